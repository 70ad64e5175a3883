"""A real pgbouncer in front of a database."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.places import reachable_directory
from tests.programs import program
from tests.support import eventually, free_port

_CONFIGURATION = """
[databases]
{dbname} = host={host} port={port} dbname={dbname}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
pool_mode = {mode}
auth_type = plain
auth_file = {directory}/users
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def pgbouncer(database_url: str, mode: str = "transaction") -> Iterator[str]:
    """The URL of `database_url` through a pgbouncer in this pool mode."""
    parts = {"host": "localhost", "port": "5432", **conninfo_to_dict(database_url)}
    port = free_port()
    with reachable_directory() as directory:
        text = _CONFIGURATION.format(listen=port, mode=mode, directory=directory, **parts)
        (directory / "pgbouncer.ini").write_text(text)
        (directory / "users").write_text(f'"{parts["user"]}" "{parts.get("password", "")}"\n')
        account = _account(str(parts["host"]), int(parts["port"]))
        process = subprocess.Popen(
            [program("pgbouncer"), "-q", str(directory / "pgbouncer.ini")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account,
        )
        try:
            eventually(lambda: _accepts(port))
            login = f"{parts['user']}:{parts.get('password', '')}"
            yield f"postgresql://{login}@127.0.0.1:{port}/{parts['dbname']}"
        finally:
            process.kill()
            process.wait()


def _account(host: str, port: int) -> dict[str, int]:
    """It refuses to be root; whoever runs Postgres may enter the directory of its socket."""
    if os.geteuid() != 0:
        return {}
    path = Path(host) / f".s.PGSQL.{port}"
    return {"user": path.stat().st_uid if host.startswith("/") else 65534}


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

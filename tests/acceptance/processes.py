"""The project's own processes: a server in front of a database, and workers behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.holdsite.client import Answer, Connection
from tests.holdsite.servers import ended, listening
from tests.support import free_port

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def server(
    kind: str, database_url: str, *, port: int = 0, **environment: str
) -> Iterator[tuple[int, int]]:
    """The project under daphne (`manage.py serve`), uvicorn or granian, on its port. Yields port and process id."""
    port = port or free_port()
    listen = ["--host", "127.0.0.1", "--port", str(port)]
    application = environment.pop("application", "asyncpoll.asgi:application")
    access_log = "--access-log" if environment.pop("access_log", "") else "--no-access-log"
    command = {
        "daphne": ["manage.py", "serve", *listen],
        "uvicorn": ["-m", "uvicorn", *listen, access_log, application],
        "granian": ["-m", "granian", *listen, "--interface", "asgi", application],
    }[kind]
    with started(command, database_url, **environment) as process:
        listening("127.0.0.1", port, process)
        yield port, process.pid


@contextmanager
def worker(
    database_url: str, *options: str, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process."""
    with started(["manage.py", "runworker", *options], database_url, **environment) as process:
        yield process


@contextmanager
def started(
    command: list[str], database_url: str, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process of the project, ended with everything it started. `log_to` names a file for what it logs."""
    path = environment.pop("log_to", "")
    with Path(path).open("ab") if path else nullcontext() as log:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=_environment(database_url, environment),
            stderr=log,
        )
        try:
            yield process
        finally:
            ended(process)


def said(command: list[str], database_url: str, **environment: str) -> tuple[int, str]:
    """The exit code and the output of a Python process of the project that ends by itself."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=_environment(database_url, environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def _environment(database_url: str, more: dict[str, str]) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "ASYNCPOLL_ANONYMOUS": "1",
        **more,
    }


def new_token(database_url: str, *options: str, **environment: str) -> str:
    """A token, made by `manage.py createtoken`."""
    command = ["manage.py", "createtoken", *options]
    code, output = said(command, database_url, **environment)
    assert code == 0, output
    return next(line for line in output.splitlines() if line.startswith("ap_"))


async def ask(
    port: int, path: str, method: str = "GET", body: bytes = b"", extra: str = ""
) -> Answer:
    """One request on a connection of its own, `extra` are more lines of its head."""
    connection = await Connection.open(port)
    try:
        await connection.ask(
            path, method, body, extra + ("Content-Type: application/json\r\n" if body else "")
        )
        return await connection.answer()
    finally:
        connection.hang_up()

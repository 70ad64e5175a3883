"""`manage.py up`: everything a newcomer needs, from nothing to a task that is being waited for."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from asyncpoll import embedded
from asyncpoll.embedded import EmbeddedError
from asyncpoll.embedded.valkey import Valkey
from asyncpoll.loopback import is_loopback
from asyncpoll.preflight import UpError, check_database, check_port, only_one
from asyncpoll.supervisor import STOP_SIGNALS, ChildrenFailed, ChildSpec, supervise

_PREPARE = "from asyncpoll.prepare import prepare; prepare()"
_READY_EVERY_SECONDS = 0.1
_READY_ANSWER_SECONDS = 2.0
_READY_SOON_SECONDS = 15.0
_LOOK_AT_SERVERS_SECONDS = 1.0
# Well under supervisor.STOP_SECONDS: what is still running then is given back, not cut off.
_WORKER_GRACE_SECONDS = 3
# How much of a failed preparation is worth showing: the end of a traceback.
_LAST_LINES = 15


@dataclass(frozen=True, slots=True)
class Options:
    """The command line of `up`."""

    host: str
    port: int
    data_dir: Path
    web: int
    workers: int

    @property
    def origin(self) -> str:
        """Where a browser on this machine finds the server."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def up(options: Options, write: Callable[[str], object]) -> None:
    """Run everything until Ctrl-C or SIGTERM. Raises UpError, nothing having been damaged, if it can't."""
    _on_stop_signals(signal.default_int_handler)
    try:
        with only_one(options.data_dir):
            check_port(options.host, options.port)
            with _database(options.data_dir, write) as database, _layer(options) as valkey:
                _run(options, database, valkey, write)
    except KeyboardInterrupt:
        write(f"Stopped. Data is kept in {options.data_dir}.")
    except (EmbeddedError, ChildrenFailed) as error:
        raise UpError(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Database:
    """Where the database is, and the server of ours if it is one."""

    url: str
    server: embedded.Server | None = None


@contextlib.contextmanager
def _database(data_dir: Path, write: Callable[[str], object]) -> Iterator[_Database]:
    url = os.environ.get("DATABASE_URL")
    if url:
        check_database(url)
        yield _Database(url)
        return
    write(f"Starting Postgres in {data_dir} ...")
    with embedded.join(data_dir) as server:
        try:
            yield _Database(server.url, server)
        finally:
            # The last steps are short, and interrupting them would leave the server running.
            _on_stop_signals(signal.SIG_IGN)


@contextlib.contextmanager
def _layer(options: Options) -> Iterator[Valkey | None]:
    """What carries wake-ups between several web processes, unless the environment names something."""
    if options.web == 1 or os.environ.get("CHANNEL_REDIS_URL"):
        yield None
        return
    with Valkey(options.data_dir) as server:
        try:
            yield server
        finally:
            _on_stop_signals(signal.SIG_IGN)


class _Server(Protocol):
    def revive(self) -> bool:
        """Start it again if it has died; True if so."""


def _run(
    options: Options,
    database: _Database,
    valkey: Valkey | None,
    write: Callable[[str], object],
) -> None:
    environment = _environment(options, database.url)
    ours: dict[str, _Server] = {}
    if database.server is not None:
        ours["Postgres"] = database.server
    if valkey is not None:
        ours["Valkey"] = valkey
        environment["CHANNEL_REDIS_URL"] = valkey.url
    write("Migrating the database ...")
    password = _prepare(environment)
    asyncio.run(
        supervise(
            _children(options),
            environment,
            lambda: _until_ready(options, write),
            lambda: write(screen(options, password)),
            *(_keep_alive(name, server, write) for name, server in ours.items()),
            on_stop=lambda: write("Stopping ..."),
        )
    )


async def _keep_alive(name: str, server: _Server, write: Callable[[str], object]) -> None:
    """Start a server of ours again whenever it has died; everybody else reconnects by themselves."""
    while True:
        await asyncio.sleep(_LOOK_AT_SERVERS_SECONDS)
        try:
            if await asyncio.to_thread(server.revive):
                write(f"{name} had ended; it was started again.")
        except EmbeddedError as error:
            write(f"{name} has ended, and could not be started yet: {error}")


def _children(options: Options) -> list[ChildSpec]:
    manage = [sys.executable, sys.argv[0]]
    where = ["--host", options.host, "--port", str(options.port), "--verbosity", "0"]
    web = ChildSpec("web", [*manage, "serve", *where, "--processes", str(options.web)])
    many = ["--processes", str(options.workers), "--grace", str(_WORKER_GRACE_SECONDS)]
    worker = ChildSpec("worker", [*manage, "runworker", *many])
    return [web, worker] if options.workers else [web]


def _environment(options: Options, url: str) -> dict[str, str]:
    hosts = os.environ.get("DJANGO_ALLOWED_HOSTS") or f"localhost,127.0.0.1,[::1],{options.host}"
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_ALLOWED_HOSTS": hosts,
        "ASYNCPOLL_DATA_DIR": str(options.data_dir),
        "ASYNCPOLL_ANONYMOUS": "1" if _is_private(options) else "0",
        # The screen stays the last that is printed while all is well.
        "ASYNCPOLL_LOG_LEVEL": os.environ.get("ASYNCPOLL_LOG_LEVEL", "WARNING"),
        "PYTHONUNBUFFERED": "1",
    }


def _is_private(options: Options) -> bool:
    """Nobody else can reach it: not by its address, and not through a proxy either, whose names would be allowed."""
    names = os.environ.get("DJANGO_ALLOWED_HOSTS", "").replace("[", "").replace("]", "").split(",")
    return all(is_loopback(name.strip()) for name in (options.host, *names) if name.strip())


def _prepare(environment: dict[str, str]) -> str | None:
    done = subprocess.run(
        [sys.executable, sys.argv[0], "shell", "--no-imports", "-c", _PREPARE],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    if done.returncode:
        said = "\n".join(lines[-_LAST_LINES:])
        raise UpError(f"{said}\nThe database could not be prepared; the lines above say why.")
    return json.loads(lines[-1])["admin_password"]


async def _until_ready(options: Options, write: Callable[[str], object]) -> None:
    patience = asyncio.get_running_loop().call_later(
        _READY_SOON_SECONDS, write, f"Still waiting for {options.origin}/readyz to answer 200 ..."
    )
    while not await _is_ready(options):  # noqa: ASYNC110 - another process sets no event of ours
        await asyncio.sleep(_READY_EVERY_SECONDS)
    patience.cancel()


async def _is_ready(options: Options) -> bool:
    authority = options.origin.removeprefix("http://")
    host = authority.rpartition(":")[0].strip("[]")
    try:
        async with asyncio.timeout(_READY_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(host, options.port)
            try:
                writer.write(
                    f"GET /readyz HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n".encode()
                )
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status.split()[1:2] == [b"200"]


def screen(options: Options, password: str | None) -> str:
    """What to show once everything is ready."""
    then = _first_steps(options) if _is_private(options) else _NEEDS_TOKENS
    return "\n".join([*_places(options, password), *then])


def _places(options: Options, password: str | None) -> list[str]:
    return [
        "",
        "asyncpoll is up. Ctrl-C stops it.",
        "",
        f"  Address  {options.origin}/",
        f"  Admin    {options.origin}/admin/   ({_who_may(password)})",
        f"  API      {options.origin}/api/v1/docs",
        *([f"  Demo     {options.origin}/demo"] if _is_private(options) else []),
        f"  Data     {options.data_dir}",
        "",
    ]


def _who_may(password: str | None) -> str:
    if password:
        return f"user admin, password {password}"
    return (
        "user admin, with the password it had before; manage.py changepassword admin sets another"
    )


_NEEDS_TOKENS = (
    "Other machines can reach it, so anonymous use is off: requests need a token, which this makes:",
    "",
    "  manage.py createtoken --owner me",
    "",
    "Names other than the above need DJANGO_ALLOWED_HOSTS.",
    "",
)


def _first_steps(options: Options) -> list[str]:
    tasks = f"{options.origin}/api/v1/tasks"
    submit = (
        f"curl -s -X POST {tasks} -H 'Content-Type: application/json' "
        """-d '{"task": "demo.dependency_report", "kwargs": {"limit": 3}}'"""
    )
    # Whatever else was answered is shown as it is.
    pick_id = """python3 -c 'import sys, json; a = sys.stdin.read(); print(json.loads(a).get("task_id") or sys.exit(a))'"""
    return [
        "Submit a real task, then wait for its next change, then for its end (without the limit it reports on everything",
        "that is installed):",
        "",
        f"  TASK=$({submit} | {pick_id})",
        f'  curl -sw "\\n" "{tasks}/$TASK/long_poll?client_known_version=1&max_hold_seconds=25"',
        f'  curl -sw "\\n" "{tasks}/$TASK/status?wait=true&timeout=25"',
        "",
    ]


def _on_stop_signals(handler: Callable[..., object] | signal.Handlers) -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, handler)

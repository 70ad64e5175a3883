"""Whom to measure: asyncpoll under three servers, and the baselines."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from bench.crowd import Running
from bench.database import Databases
from bench.errors import BenchError
from bench.project import holding, manage
from bench.server import Server, free_port
from bench.tasks import BaselineTasks, StoredTasks

SERVERS = ("daphne", "uvicorn", "granian")

# The cost of a queue that overflows is a second of waiting and none of CPU; no server should have to show it.
_BACKLOG = "4096"
# uvicorn closes idle connections after 5 s; a run needs them for longer.
_KEEP_ALIVE_SECONDS = "120"


@dataclass(frozen=True, slots=True)
class Options:
    """How servers are started: the event loop, and the most requests that will be held at once."""

    loop: str
    most_held: int


Command = Callable[[int, Options], list[str]]


@dataclass(frozen=True, slots=True)
class Subject:
    """One line of the table. `stored` says that its tasks are in Postgres; `most_held` bounds what it is put through."""

    name: str
    command: Command
    stored: bool
    is_reference: bool = False
    most_held: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def running(self, databases: Databases, options: Options, core: int) -> Iterator[Running]:
        """Start it on `core`, with a fresh database if it has one; killed at the end."""
        port = free_port()
        command = self.command(port, options)
        if not self.stored:
            with (
                Server(command, self.environment, port, core) as server,
                closing(BaselineTasks(port)) as remote,
            ):
                yield Running(server, remote)
            return
        with databases.fresh() as url:
            variables = {**holding(url, options.most_held), **self.environment}
            with (
                Server(command, variables, port, core) as server,
                closing(StoredTasks(url)) as stored,
            ):
                yield Running(server, stored)


def subjects(servers: list[str], channels_up_to: int) -> list[Subject]:
    """The baselines, the reference first, and asyncpoll under each of `servers`. Raises BenchError."""
    for package in ("fastapi", "uvicorn", *(name for name in servers if name != "daphne")):
        if importlib.util.find_spec(package) is None:
            raise BenchError(
                f"{package} is not installed; pip install -r requirements-dev.txt brings it."
            )
    return [
        Subject(
            "FastAPI + asyncio.Event (uvicorn)",
            lambda port, options: _uvicorn("bench.baselines.fastapi_event:app", port, options),
            stored=False,
            is_reference=True,
        ),
        Subject(
            "Django, channel per request (uvicorn)",
            lambda port, options: _uvicorn(
                "bench.baselines.django_channels:application", port, options
            ),
            stored=False,
            most_held=channels_up_to,
        ),
        *(_asyncpoll(server) for server in servers),
    ]


def http_implementation() -> str:
    """What parses HTTP under uvicorn, for asyncpoll and for the baselines alike."""
    return "httptools" if importlib.util.find_spec("httptools") else "h11"


def _asyncpoll(server: str) -> Subject:
    commands: dict[str, Command] = {
        "daphne": lambda port, options: manage("serve", "--port", str(port)),
        "uvicorn": lambda port, options: _uvicorn("asyncpoll.asgi:application", port, options),
        "granian": lambda port, options: _granian("asyncpoll.asgi:application", port, options),
    }
    return Subject(f"asyncpoll ({server})", commands[server], stored=True)


def _uvicorn(application: str, port: int, options: Options) -> list[str]:
    return [
        *(sys.executable, "-m", "uvicorn", application),
        *("--port", str(port)),
        *("--loop", options.loop),
        *("--http", http_implementation()),
        *("--backlog", _BACKLOG),
        *("--timeout-keep-alive", _KEEP_ALIVE_SECONDS),
        *("--log-level", "warning"),
        "--no-access-log",
    ]


def _granian(application: str, port: int, options: Options) -> list[str]:
    return [
        *(sys.executable, "-m", "granian", application),
        *("--interface", "asgi"),
        *("--port", str(port)),
        *("--loop", options.loop),
        *("--backlog", _BACKLOG),
        # Its default is one connection for each place in the backlog; the rest would wait unread.
        *("--backpressure", str(2 * options.most_held + 1000)),
        *("--log-level", "warning"),
        "--no-ws",
    ]

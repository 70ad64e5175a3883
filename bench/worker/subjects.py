"""Whom to measure: asyncpoll, and other task queues as their documentation has them run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.database import Databases
from bench.project import environment, manage
from bench.worker.aims import ASYNCPOLL

Command = list[str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subject keeps its tasks: variables for its processes, and what asks for the tasks that aren't over."""

    variables: dict[str, str]
    database_url: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A task queue. `unfinished` is true while a task waits or runs; `most_tasks` bounds the backlog of a slow one."""

    name: str
    packages: tuple[str, ...]
    produce: Command
    work: Callable[[int], Command]
    unfinished: str
    settings: str = ""
    install: Command | None = None
    most_tasks: int = 40_000
    note: str = ""

    @property
    def missing(self) -> list[str]:
        """Packages that it needs and that are not installed."""
        return [name for name in self.packages if importlib.util.find_spec(name) is None]

    def tasks(self, batch: int) -> int:
        """A backlog that takes a second or more."""
        return min(self.most_tasks, 4_000 + 2_000 * (batch - 1))

    @contextmanager
    def place(self, databases: Databases) -> Iterator[Place]:
        """A fresh database, gone afterwards."""
        with databases.fresh() if self.name == ASYNCPOLL else databases.empty() as url:
            yield Place(environment(url, self.settings), url)


def subjects() -> list[Subject]:
    """Everyone, asyncpoll first."""
    return [
        Subject(
            name=ASYNCPOLL,
            packages=(),
            produce=_module("bench.worker.site.produce"),
            work=lambda batch: manage("runworker", "--concurrency", str(batch)),
            unfinished="SELECT EXISTS (SELECT FROM tasks_app_task WHERE ready)"
            " OR EXISTS (SELECT FROM tasks_app_task WHERE status = 'RUNNING')",
            settings="bench.worker.site.settings",
            note="`runworker --concurrency` is the batch, on asyncio",
        ),
        Subject(
            name="pgqueuer",
            packages=("pgqueuer", "asyncpg"),
            produce=_module("bench.baselines.pgqueuer_jobs", "produce"),
            work=lambda batch: _module("bench.baselines.pgqueuer_jobs", "work", str(batch)),
            unfinished="SELECT EXISTS (SELECT FROM pgqueuer)",
            install=_module("bench.baselines.pgqueuer_jobs", "install"),
            note="QueueManager with `batch_size`, asyncpg, uvloop",
        ),
    ]


def _module(name: str, *arguments: str) -> Command:
    return [sys.executable, "-m", name, *arguments]

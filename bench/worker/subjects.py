"""Whom to measure: asyncpoll, and other task queues as their documentation has them run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from bench.broker import broker, is_installed
from bench.database import Databases
from bench.project import environment, manage
from bench.worker.aims import ASYNCPOLL

Command = list[str]

_SITE = "bench.baselines.django_tasks_db_site"
# Its default is a second, which would be its pick-up.
_LOOK_SECONDS = "0.1"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subject keeps its tasks: variables for its processes, and the database if it is one."""

    variables: dict[str, str]
    database_url: str | None


@dataclass(frozen=True, slots=True)
class Subject:
    """A task queue, and how its processes are started.

    `unfinished` is SQL that is true while a task waits or runs; empty where the worker is through with a task before
    it runs it. `most_tasks` bounds the backlog of a slow one, `most_batch` is 1 for one that has no batches.
    """

    name: str
    note: str
    place: Callable[[Databases], AbstractContextManager[Place]]
    produce: Command
    work: Callable[[int], Command]
    unfinished: str = ""
    install: Command | None = None
    packages: tuple[str, ...] = ()
    needs_broker: bool = False
    most_tasks: int = 40_000
    most_batch: int | None = None

    @property
    def missing(self) -> list[str]:
        """What it needs and what is not installed."""
        missing = [name for name in self.packages if importlib.util.find_spec(name) is None]
        return [*missing, *(["a Redis server"] if self.needs_broker and not is_installed() else [])]

    def takes(self, batch: int) -> bool:
        """Can it be measured with batches of that size?"""
        return self.most_batch is None or batch <= self.most_batch

    def tasks(self, batch: int) -> int:
        """A backlog that takes a second or more."""
        return min(self.most_tasks, 4_000 + 2_000 * (batch - 1))


def subjects() -> list[Subject]:
    """Everyone, asyncpoll first."""
    return [
        _asyncpoll(),
        _pgqueuer("pgqueuer", 1),
        # As many as its own benchmark has.
        _pgqueuer("pgqueuer-5", 5),
        _procrastinate(),
        _django_tasks_db(),
        _celery("celery", "prefork", 2),
        _celery("celery-solo", "solo", 1),
    ]


def _asyncpoll() -> Subject:
    return Subject(
        name=ASYNCPOLL,
        note="runworker with --batch, four batches at once, on asyncio",
        place=_migrated,
        produce=_module("bench.worker.site.produce"),
        # pgqueuer's tasks at once are not bounded by its batch; of four one is claimed, one runs, two are committed.
        work=lambda batch: manage(
            "runworker", "--batch", str(batch), "--concurrency", str(4 * batch)
        ),
        unfinished="SELECT EXISTS (SELECT FROM tasks_app_task WHERE ready)"
        " OR EXISTS (SELECT FROM tasks_app_task WHERE status = 'RUNNING')",
    )


def _pgqueuer(name: str, managers: int) -> Subject:
    module = "bench.baselines.pgqueuer_jobs"
    return Subject(
        name=name,
        note=f"{managers} QueueManager{'s' if managers > 1 else ''} with batch_size, on asyncpg and uvloop",
        place=_empty,
        install=_module(module, "install"),
        produce=_module(module, "produce"),
        work=lambda batch: _module(module, "work", str(batch), str(managers)),
        unfinished="SELECT EXISTS (SELECT FROM pgqueuer)",
        packages=("pgqueuer", "asyncpg"),
    )


def _procrastinate() -> Subject:
    module = "bench.baselines.procrastinate_jobs"
    return Subject(
        name="procrastinate",
        note="App.run_worker_async with concurrency, on psycopg and uvloop",
        place=_empty,
        install=_module(module, "install"),
        produce=_module(module, "produce"),
        work=lambda batch: _module(module, "work", str(batch)),
        unfinished="SELECT EXISTS"
        " (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
        packages=("procrastinate",),
        most_tasks=2_000,
    )


def _django_tasks_db() -> Subject:
    return Subject(
        name="django-tasks-db",
        note=f"db_worker, one task at a time and so at batch 1 only, looking every {_LOOK_SECONDS} s when idle",
        place=_site,
        install=_module("django", "migrate", "--verbosity", "0"),
        produce=_module(f"{_SITE}.produce"),
        work=lambda batch: _module(
            *("django", "db_worker", "--verbosity", "0", "--no-startup-delay"),
            *("--interval", _LOOK_SECONDS),
        ),
        unfinished="SELECT EXISTS"
        " (SELECT FROM django_tasks_database_dbtaskresult WHERE status IN ('READY', 'RUNNING'))",
        packages=("django_tasks_db",),
        most_tasks=1_500,
        most_batch=1,
    )


def _celery(name: str, pool: str, processes: int) -> Subject:
    return Subject(
        name=name,
        note=f"pool {pool} with {processes}, --prefetch-multiplier is the batch, on Redis; keeps no results, enqueues one by one",
        place=_on_redis,
        produce=_module("bench.baselines.celery_app"),
        work=lambda batch: _module(
            *("celery", "-A", "bench.baselines.celery_app", "worker"),
            *("--pool", pool, "--concurrency", str(processes)),
            *("--prefetch-multiplier", str(batch), "--loglevel", "WARNING"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
        packages=("celery", "redis"),
        needs_broker=True,
        most_tasks=4_000,
    )


@contextmanager
def _migrated(databases: Databases) -> Iterator[Place]:
    with databases.fresh() as url:
        yield Place(environment(url, "bench.worker.site.settings"), url)


@contextmanager
def _empty(databases: Databases) -> Iterator[Place]:
    with databases.empty() as url:
        yield Place({"DATABASE_URL": url}, url)


@contextmanager
def _site(databases: Databases) -> Iterator[Place]:
    with databases.empty() as url:
        yield Place({"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": f"{_SITE}.settings"}, url)


@contextmanager
def _on_redis(databases: Databases) -> Iterator[Place]:
    with broker() as url:
        yield Place({"BENCH_BROKER_URL": url}, None)


def _module(name: str, *arguments: str) -> Command:
    return [sys.executable, "-m", name, *arguments]

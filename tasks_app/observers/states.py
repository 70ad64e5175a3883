"""What is so at the moment somebody asks, as Prometheus gauges. Values in, metrics out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tasks_app.store import QueueDepth
from tasks_app.wakeup.service import LinkState, Part


@dataclass(frozen=True, slots=True)
class PoolUse:
    """Counters of a connection pool, by psycopg_pool's names."""

    stats: Mapping[str, int]

    def collect(self) -> Iterator[Metric]:
        """Connections in use and idle, and what waiting for one has cost."""
        size, idle = self.stats.get("pool_size", 0), self.stats.get("pool_available", 0)
        yield _by(
            "pool_connections",
            "Connections to the database",
            "state",
            {"used": size - idle, "idle": idle},
        )
        yield _one(
            "pool_limit", "Most connections that the pool opens", self.stats.get("pool_max", 0)
        )
        yield _one(
            "pool_waiting",
            "Statements that wait for a connection",
            self.stats.get("requests_waiting", 0),
        )
        yield _counted("pool_requests", "Connections asked for", self.stats.get("requests_num", 0))
        yield _counted(
            "pool_wait_seconds",
            "Time spent waiting for a connection",
            self.stats.get("requests_wait_ms", 0) / 1000,
        )
        yield _counted(
            "pool_errors",
            "Connections asked for in vain",
            self.stats.get("requests_errors", 0),
        )


@dataclass(frozen=True, slots=True)
class LinkUse:
    """How commits reach a process."""

    link: LinkState

    def collect(self) -> Iterator[Metric]:
        """Link, layer and the part of this process in the bridge."""
        yield _one("link_up", "1 while wake-ups are heard", self.link.trusted)
        yield _one(
            "layer_up", "1 while the channel layer does what it is asked for", self.link.layer
        )
        parts = {part: part == self.link.bridge for part in get_args(Part)}
        yield _by("bridge", "1 for the part that this process has", "part", parts)


@dataclass(frozen=True, slots=True)
class ServingUse:
    """Requests in a web process. `held` is by route."""

    held: Mapping[str, int]
    inside: int
    most_held: int
    draining: bool

    def collect(self) -> Iterator[Metric]:
        """Held and limits, and draining."""
        yield _by("held", "Requests held now", "route", self.held)
        yield _one("inside", "Waits in this process, held or about to be answered", self.inside)
        yield _one("held_limit", "Requests held at once before holds are shed", self.most_held)
        yield _one("draining", "1 while this process goes away", self.draining)


@dataclass(frozen=True, slots=True)
class LoopUse:
    """How a process's event loop keeps up, and how many asyncio tasks it has."""

    lag_seconds: float
    tasks: int

    def collect(self) -> Iterator[Metric]:
        """Both."""
        yield _one("event_loop_lag_seconds", "How late the event loop was lately", self.lag_seconds)
        yield _one("event_loop_tasks", "asyncio tasks in this process", self.tasks)


@dataclass(frozen=True, slots=True)
class ProcessesUse:
    """Of the processes that share a port: how many are in this scrape, and how many did not answer in time."""

    answering: int
    silent: int

    def collect(self) -> Iterator[Metric]:
        """Both."""
        states = {"answering": self.answering, "silent": self.silent}
        yield _by("processes", "Serving processes of this port", "state", states)


@dataclass(frozen=True, slots=True)
class QueueUse:
    """The queues as they were a few seconds ago; None: the database did not say."""

    depths: Sequence[QueueDepth] | None

    def collect(self) -> Iterator[Metric]:
        """Depth and age by queue, and whether the database answered."""
        yield _one("database_up", "1 if the database answered", self.depths is not None)
        depths = self.depths or ()
        yield _by(
            "queue_depth",
            "Ready tasks, counted up to 10000",
            "queue",
            {each.queue: each.ready for each in depths},
        )
        yield _by(
            "queue_age_seconds",
            "Longest wait of a task that is next in line",
            "queue",
            {each.queue: each.oldest_seconds for each in depths},
        )


@dataclass(frozen=True, slots=True)
class WorkerUse:
    """What a worker process has in hand."""

    running: int
    concurrency: int

    def collect(self) -> Iterator[Metric]:
        """Tasks that run, and how many may."""
        yield _one("worker_running", "Tasks that run in this worker", self.running)
        yield _one("worker_concurrency", "Tasks that may run in it at once", self.concurrency)


def _one(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"asyncpoll_{name}", says, value=value)


def _counted(name: str, says: str, value: float) -> Metric:
    return CounterMetricFamily(f"asyncpoll_{name}", says, value=value)


def _by(name: str, says: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"asyncpoll_{name}", says, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family

"""Events as Prometheus metrics: counters and histograms of this process since it began to count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from asyncpoll.contract import Status
from tasks_app.events import subscribe_once
from tasks_app.observers.labels import TaskLabels, failure_label
from tasks_app.observers.waits import Waits

REGISTRY: Final = CollectorRegistry()
"""Our own: the library's default one belongs to the project that we are part of."""
WAITS: Final = Waits()
REGISTRY.register(WAITS)

_TASK_SECONDS = (0.01, 0.05, 0.25, 1, 5, 15, 30, 60, 120, 300, 600, 1800)
_COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3)
_DELIVERY_SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SIZES = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000)


def _counter(name: str, says: str, *labels: str) -> Counter:
    return Counter(f"asyncpoll_{name}", says, labels, registry=REGISTRY)


def _histogram(name: str, says: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
    return Histogram(f"asyncpoll_{name}", says, labels, registry=REGISTRY, buckets=buckets)


_BATCHES = _histogram("batch_size", "Tasks in one statement", _SIZES, "verb")
_CLAIMED = _counter("tasks_claimed", "Tasks claimed")
_COMMITTED = _counter("changes_committed", "Changes of running tasks committed")
_COMMIT_TOOK = _histogram("commit_seconds", "How long one commit took", _COMMIT_SECONDS)
_COMMIT_RETRIED = _counter("commits_retried", "Commits that the database did not take")
_FENCED = _counter("tasks_fenced", "Changes dropped: the attempt did not hold its task any more")
_RESCUED = _counter("tasks_rescued", "Tasks taken from an expired lease", "status")
_RETRIED = _counter("tasks_retried", "Attempts that failed and are followed by another", "task")
_FINISHED = _counter("attempts_finished", "Attempts that ended", "task", "status")
_RAN_FOR = _histogram("attempt_seconds", "How long attempts ran", _TASK_SECONDS)
_WAITED = _histogram("queue_wait_seconds", "From due to start, per attempt", _TASK_SECONDS)
_HEARTBEATS_FAILED = _counter("heartbeats_failed", "Heartbeats that the database did not take")
_LEASES_LOST = _counter("leases_lost", "Attempts stopped because their lease was lost")
_LINK_LOST = _counter("link_losses", "Times that wake-ups went unheard")
_LAYER_JOINED = _counter("layer_rejoins", "Times that the channel layer was joined anew")
_CONNECTED = _counter("listener_connects", "Connections of a listener", "application")
_LEADING = _counter("bridge_elections", "Times that this process became the bridge of a fleet")
_LOOP_FAILED = _counter("loop_failures", "Rounds of a background loop that failed", "loop")

_INBOXES_FILLED = _counter("inbox_entries", "Ends told to inboxes")
_DELIVERED = _counter("deliveries_sent", "Webhooks that were taken")
_UNDELIVERED = _counter("deliveries_failed", "Attempts to send a webhook that failed", "error")
_ABANDONED = _counter("deliveries_abandoned", "Webhooks that were given up")
_DELIVERY_TOOK = _histogram(
    "delivery_attempt_seconds", "How long an attempt to send a webhook took", _DELIVERY_SECONDS
)
_OWED = _histogram("delivery_owed_seconds", "From due to the attempt that was taken", _TASK_SECONDS)

_CLAIMS = _BATCHES.labels("claim")
_COMMITS = _BATCHES.labels("commit")
_READS = _BATCHES.labels("read")
for _status in (Status.PENDING, Status.FAILED, Status.CANCELLED):
    # At 0 from the start: of a series that begins with its first event, rate() does not see that one.
    _RESCUED.labels(_status)
_tasks = TaskLabels()


def _claimed(facts: dict[str, Any]) -> None:
    _CLAIMED.inc(facts["count"])
    _CLAIMS.observe(facts["count"])


def _committed(facts: dict[str, Any]) -> None:
    _COMMITTED.inc(facts["size"])
    _COMMITS.observe(facts["size"])
    _COMMIT_TOOK.observe(facts["duration_ms"] / 1000)


def _finished(facts: dict[str, Any]) -> None:
    task = _tasks.label(facts["name"])
    # None is given back without counting as a failure.
    _FINISHED.labels(task, facts["status"] or "RELEASED").inc()
    if facts["status"] == Status.PENDING and facts["error_type"]:
        _RETRIED.labels(task).inc()
    _RAN_FOR.observe(facts["duration_ms"] / 1000)
    _WAITED.observe(max(0.0, facts["queue_wait_ms"] / 1000))


def _sent(facts: dict[str, Any]) -> None:
    _DELIVERED.inc()
    _DELIVERY_TOOK.observe(facts["duration_ms"] / 1000)
    _OWED.observe(max(0.0, facts["owed_seconds"]))


def _unsent(facts: dict[str, Any]) -> None:
    _UNDELIVERED.labels(failure_label(facts["error"])).inc()
    _DELIVERY_TOOK.observe(facts["duration_ms"] / 1000)


def _abandoned(facts: dict[str, Any]) -> None:
    _unsent(facts)
    _ABANDONED.inc()


Handler = Callable[[dict[str, Any]], None]


def _each(counter: Counter, *labels: str) -> Handler:
    """One more, by those of the facts."""
    if not labels:
        return lambda facts: counter.inc()
    return lambda facts: counter.labels(*(facts[label] for label in labels)).inc()


HANDLERS: Final[Mapping[str, Handler]] = MappingProxyType(
    {
        "hold.answered": WAITS.note,
        "claim.answered": WAITS.note,
        "task.claimed": _claimed,
        "task.committed": _committed,
        "task.finished": _finished,
        "task.fenced": _each(_FENCED),
        "task.rescued": _each(_RESCUED, "status"),
        "inbox.filled": lambda facts: _INBOXES_FILLED.inc(facts["count"]),
        "delivery.sent": _sent,
        "delivery.failed": _unsent,
        "delivery.abandoned": _abandoned,
        "commit.retried": _each(_COMMIT_RETRIED),
        "reader.read": lambda facts: _READS.observe(facts["asked"]),
        "heartbeat.failed": _each(_HEARTBEATS_FAILED),
        "lease.lost": _each(_LEASES_LOST),
        "hub.trust_ended": _each(_LINK_LOST),
        "hub.rebuilt": _each(_LAYER_JOINED),
        "listener.connected": _each(_CONNECTED, "application"),
        "bridge.leading": _each(_LEADING),
        "loop.failed": _each(_LOOP_FAILED, "loop"),
    }
)


def install() -> Callable[[], None]:
    """Count events from now on, once per process. Gives the function that ends it."""
    return subscribe_once(_count)


def _count(event: str, facts: dict[str, Any]) -> None:
    handler = HANDLERS.get(event)
    if handler is not None:
        handler(facts)

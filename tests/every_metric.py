"""Every metric that any process has, as a scrape in which everything has happened once."""

from __future__ import annotations

from asyncpoll.contract import ClaimOutcome, Outcome, Status
from tasks_app.events import emit
from tasks_app.observers.exposition import exposition
from tasks_app.observers.states import (
    LinkUse,
    LoopUse,
    PoolUse,
    ProcessesUse,
    QueueUse,
    ServingUse,
    WorkerUse,
)
from tasks_app.store import QueueDepth
from tasks_app.wakeup.reader import Cause
from tasks_app.wakeup.service import LinkState
from tests.scraping import Scrape

HELD = {"route": "status", "cause": Cause.HINT, "held_seconds": 2.0, "finished_at": None}
FINISHED = {
    "name": "demo.task",
    "error_type": "",
    "duration_ms": 1500.0,
    "queue_wait_ms": -3.0,
}
EVERY_STATE = (
    ServingUse({"status": 2}, inside=3, most_held=10, draining=False),
    LoopUse(lag_seconds=0.5, tasks=7),
    LinkUse(LinkState("leader", trusted=True, layer=False)),
    PoolUse({"pool_max": 4, "pool_size": 3, "pool_available": 1, "requests_wait_ms": 1500}),
    QueueUse([QueueDepth("red", 7, 1.5)]),
    ProcessesUse(answering=2, silent=1),
    WorkerUse(running=1, concurrency=20),
)
EVENTS = [
    ("hold.answered", {**HELD, "outcome": Outcome.CHANGED}),
    ("claim.answered", {"route": "claim", "outcome": ClaimOutcome.EMPTY, "held_seconds": 1.0}),
    ("task.claimed", {"count": 3}),
    ("task.committed", {"size": 2, "duration_ms": 4.0}),
    ("task.finished", {**FINISHED, "status": Status.SUCCESS}),
    ("task.finished", {**FINISHED, "status": Status.PENDING, "error_type": "OSError"}),
    ("task.finished", {**FINISHED, "status": None}),
    ("task.fenced", {}),
    ("task.rescued", {"status": Status.PENDING}),
    ("commit.retried", {}),
    ("reader.read", {"asked": 9}),
    ("heartbeat.failed", {}),
    ("lease.lost", {}),
    ("hub.trust_ended", {}),
    ("hub.rebuilt", {}),
    ("listener.connected", {"application": "listener"}),
    ("bridge.leading", {}),
    ("loop.failed", {"loop": "listener"}),
    ("inbox.filled", {"count": 4}),
    ("delivery.sent", {"duration_ms": 500.0, "owed_seconds": 3.0}),
    ("delivery.failed", {"duration_ms": 500.0, "error": "HTTP 503"}),
    ("delivery.abandoned", {"duration_ms": 500.0, "error": "Timeout"}),
]


def emit_all() -> None:
    """Everything happens."""
    for event, facts in EVENTS:
        emit(event, **facts)


def scrape_text() -> str:
    """What Prometheus gets now."""
    return exposition(EVERY_STATE).decode()


def scraped() -> Scrape:
    """The same, read."""
    return Scrape(scrape_text())

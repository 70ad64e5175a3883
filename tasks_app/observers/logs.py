"""One log line per event of interest; every other event at DEBUG, as it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from logging import DEBUG, ERROR, INFO, WARNING
from types import MappingProxyType
from typing import Any, Final

from tasks_app.events import subscribe

logger = logging.getLogger("tasks_app")

LINES: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        "worker.started": (
            INFO,
            "Worker %(id)s started: process %(pid)s, queues %(queues)s, concurrency %(concurrency)s, "
            "%(tasks)s known tasks",
        ),
        "worker.stopping": (INFO, "Worker %(id)s stops; %(running)s tasks are running"),
        "worker.stopped": (
            INFO,
            "Worker %(id)s stopped; left behind: %(stragglers)s that ignored their end, %(unwritten)s unwritten",
        ),
        "worker.died": (
            ERROR,
            "Worker process %(pid)s ended with code %(code)s; starting another in %(pause).1f s",
        ),
        "task.claimed": (DEBUG, "Claimed %(count)s of %(asked)s tasks"),
        "task.started": (DEBUG, "%(name)s %(id)s attempt %(attempt)s started"),
        "task.committed": (DEBUG, "Committed %(size)s changes in %(duration_ms).1f ms"),
        "task.promoted": (DEBUG, "%(count)s tasks are due"),
        "task.rescued": (WARNING, "Task %(id)s was rescued from an expired lease: %(status)s"),
        "task.given_back": (
            WARNING,
            "The answer to a claim was lost; the %(count)s tasks that it had taken are given back",
        ),
        "tasks.pruned": (
            INFO,
            "Deleted %(count)s old tasks in %(batches)s batches, %(orphans)s history rows without a task, "
            "%(workers)s old worker processes, %(keys)s old idempotency keys",
        ),
        "schedule.ticked": (INFO, "Schedule %(name)s ticked %(late_seconds).3f s ago: task %(id)s"),
        "schedule.strange": (
            WARNING,
            "Schedule %(name)s is left to the release that declared it: %(error)s",
        ),
        "schedules.lapsed": (
            WARNING,
            "Schedules %(names)s are no longer declared by any process and make no more tasks",
        ),
        "task.fenced": (
            WARNING,
            "%(name)s %(id)s attempt %(attempt)s was fenced off: its %(status)s is dropped",
        ),
        "lease.lost": (
            WARNING,
            "%(name)s %(id)s attempt %(attempt)s lost its lease and is stopped",
        ),
        "commit.retried": (
            WARNING,
            "The database took no commit (%(error)s); %(size)s changes are kept for the next try",
        ),
        "commit.locked": (
            WARNING,
            "%(name)s %(id)s attempt %(attempt)s: another transaction has its row locked; its commit waits",
        ),
        "task.unfit": (
            ERROR,
            "Task %(id)s is failed (%(reason)s), as the database said: %(error)s",
        ),
        "commit.refused": (ERROR, "%(name)s %(id)s is failed: its change was refused: %(error)s"),
        "commit.abandoned": (
            ERROR,
            "%(name)s %(id)s attempt %(attempt)s: its %(status)s could not be committed: %(error)s",
        ),
        "heartbeat.failed": (
            WARNING,
            "Heartbeat failed %(failures)s times in a row (%(error)s); next in %(pause).1f s",
        ),
        "work.malformed": (WARNING, "Ignored %(payload)r on %(channel)s"),
        "loop.failed": (
            WARNING,
            "%(loop)s failed %(failures)s times in a row (%(error)r); next in %(pause).1f s",
        ),
        "listener.deaf": (
            WARNING,
            "%(application)s heard nothing for %(silence_seconds).1f s and reconnects",
        ),
        "hub.trust_began": (INFO, "Wake-ups are heard, epoch %(epoch)s"),
        "hub.trust_ended": (
            WARNING,
            "Wake-ups went unheard in epoch %(epoch)s; waiting tasks are read every second meanwhile",
        ),
        "hub.rebuilt": (
            WARNING,
            "The channel layer was joined anew after %(silence_seconds).1f s of silence",
        ),
        "link.failed": (WARNING, "What the channel layer delivered could not be read: %(error)r"),
        "bridge.leading": (
            INFO,
            "This process relays wake-ups for all (database session %(process)s)",
        ),
        "bridge.resigned": (
            WARNING,
            "What this process relays is not heard; it makes room for another after %(led_seconds).1f s",
        ),
        "bridge.deposed": (
            WARNING,
            "The process that relays wake-ups is silent; its database session %(process)s is ended",
        ),
        "bridge.overrun": (WARNING, "The channel layer is stuck; %(dropped)s hints were dropped"),
        "server.lags": (
            WARNING,
            "The event loop is %(lag_seconds).1f s late: polls are answered at once and asked to come back later",
        ),
        "server.caught_up": (INFO, "The event loop keeps up again: %(lag_seconds).1f s late"),
        "tokens.untouched": (
            WARNING,
            "The use of %(count)s tokens could not be noted (%(error)s)",
        ),
        "drain.began": (INFO, "Draining: answering %(held)s held requests"),
        "server.died": (
            ERROR,
            "Server process %(process)s of slot %(slot)s ended with code %(exit_code)s",
        ),
        "server.restarting": (
            INFO,
            "Replacing %(processes)s server processes, one after the other",
        ),
        "server.restarted": (INFO, "Replaced %(processes)s server processes"),
        "server.restart_failed": (
            ERROR,
            "The successor in slot %(slot)s did not start; the processes that serve stay as they are",
        ),
        "announcer.failed": (
            WARNING,
            "Queues %(queues)s could not be announced (%(error)s); workers find the tasks by polling",
        ),
    }
)
_FINISHED = "%(name)s %(id)s attempt %(attempt)s: %(verdict)s in %(duration_ms).0f ms"


def install() -> Callable[[], None]:
    """Log events from now on, once per process. Gives the function that ends it."""
    global _end
    if _end is None:
        unsubscribe = subscribe(_log)

        def end() -> None:
            global _end
            unsubscribe()
            _end = None

        _end = end
    return _end


_end: Callable[[], None] | None = None


def ensure_shown() -> None:
    """Write lines from INFO up to stderr where no logging was set up: whoever started a worker wants to see it work."""
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(INFO)


def _log(event: str, facts: dict[str, Any]) -> None:
    if event == "task.finished":
        _log_finished(facts)
        return
    level, line = LINES.get(event, (DEBUG, ""))
    if not logger.isEnabledFor(level):
        return
    if line:
        logger.log(level, line, facts)
    else:
        logger.log(level, "%s %s", event, facts)


def _log_finished(facts: dict[str, Any]) -> None:
    """A success is routine, an error is what people look for."""
    level = WARNING if facts["error_type"] else INFO
    if logger.isEnabledFor(level):
        verdict = facts["status"] or "does not count"
        if facts["error_type"]:
            verdict = f"{verdict} ({facts['error_type']}: {facts['error_message']})"
        logger.log(level, _FINISHED, {**facts, "verdict": verdict})

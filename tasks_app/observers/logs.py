"""One log line per event of interest; every other event at DEBUG, as it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from logging import DEBUG, ERROR, INFO, WARNING
from types import MappingProxyType
from typing import Any, Final

from asyncpoll.contract import TERMINAL, Status
from tasks_app.errors import Unmigrated
from tasks_app.events import subscribe_once
from tasks_app.observers import done
from tasks_app.observers.lines import formatter
from tasks_app.observers.repeats import Repeats
from tasks_app.observers.wording import Facts, counted, delay

logger = logging.getLogger("tasks_app")
_requests = logging.getLogger("django.request")

LINES: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        "worker.started": (
            INFO,
            "Worker %(id)s started: process %(pid)s, queues %(queues names)s, concurrency %(concurrency)s, "
            "%(tasks known tasks)s",
        ),
        "worker.stopping": (INFO, "Worker %(id)s stops; running: %(running tasks)s"),
        "worker.blocked": (
            WARNING,
            "A task blocks the event loop of worker %(id)s beyond its time limit or the worker's grace; the worker ends "
            "and gives back: %(running running tasks)s",
        ),
        "worker.died": (
            ERROR,
            "Worker process %(pid)s ended with code %(code)s; starting another in %(pause delay)s",
        ),
        "task.claimed": (DEBUG, "Claimed %(count)s of %(asked tasks)s"),
        "task.started": (DEBUG, "%(name)s %(id)s attempt %(attempt)s started"),
        "task.committed": (DEBUG, "Committed %(size changes)s in %(duration_ms).1f ms"),
        "task.promoted": (DEBUG, "Due: %(count tasks)s"),
        "task.rescued": (WARNING, "Task %(id)s was rescued from an expired lease: %(status)s"),
        "task.escaped": (
            WARNING,
            "A coroutine that a task began raised %(error)r, which ends the task and not the worker",
        ),
        "task.given_back": (
            WARNING,
            "The answer to a claim was lost; given back: %(count tasks)s",
        ),
        "tasks.pruned": (
            INFO,
            "Deleted %(count old tasks)s in %(batches batches)s, history without a task: %(orphans rows)s, "
            "%(workers old worker processes)s, %(keys old idempotency keys)s, %(deliveries old deliveries)s, "
            "%(entries inbox entries)s",
        ),
        "order.batch_done": (
            INFO,
            "Bulk action %(id)s (%(verb)s): changed %(count tasks)s, skipped %(skipped)s",
        ),
        "order.task_skipped": (
            INFO,
            "Bulk action %(order)s of %(by)s: %(verb)s skipped task %(id)s, which was %(status)s",
        ),
        "inbox.filled": (DEBUG, "Told to inboxes: %(count ends)s"),
        "delivery.sent": (
            INFO,
            "Webhook %(id)s to %(host)s was taken at attempt %(attempt)s: %(status)s in %(duration_ms).0f ms",
        ),
        "delivery.failed": (
            WARNING,
            "Webhook %(id)s to %(host)s was not taken at attempt %(attempt)s (%(error)s in %(duration_ms).0f ms); next in "
            "%(pause delay)s",
        ),
        "delivery.abandoned": (
            ERROR,
            "Webhook %(id)s to %(host)s is given up after attempt %(attempt)s (%(error)s); it was due for %(owed_seconds delay)s",
        ),
        "delivery.broke": (
            ERROR,
            "Webhook %(id)s to %(host)s met a fault of ours at attempt %(attempt)s: %(error)s in %(place)s",
        ),
        "schedule.ticked": (INFO, "Schedule %(name)s ticked %(late_seconds).3f s ago: task %(id)s"),
        "schedule.strange": (
            WARNING,
            "Schedule %(name)s is left to the release that declared it: %(error)s",
        ),
        "schedules.lapsed": (
            WARNING,
            "Schedules %(names names)s are no longer declared by any process and make no more tasks",
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
            "The database took no commit (%(error)s); %(size changes)s to try again",
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
            "Heartbeat failed, %(failures times)s in a row (%(error)s); next in %(pause delay)s",
        ),
        "work.malformed": (WARNING, "Ignored %(payload)r on %(channel)s"),
        "loop.failed": (
            WARNING,
            "%(loop)s failed, %(failures times)s in a row (%(error)r); next in %(pause delay)s",
        ),
        "loop.recovered": (INFO, "%(loop)s works again, after it failed %(failures times)s"),
        "listener.deaf": (
            WARNING,
            "%(application)s heard nothing for %(silence_seconds).1f s and reconnects",
        ),
        "database.unmigrated": (ERROR, "%(error)s"),
        "connection.silent": (
            WARNING,
            "The database said nothing for %(silence_seconds).0f s on a connection that still stands; it is given up",
        ),
        "hub.trust_began": (INFO, "Wake-ups are heard, epoch %(epoch)s"),
        "hub.trust_ended": (
            WARNING,
            "Wake-ups went unheard in epoch %(epoch)s; waiting tasks are read every second meanwhile",
        ),
        "hub.rebuilt": (
            WARNING,
            "The channel layer was joined anew after %(silence_seconds silence)s",
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
        "bridge.overrun": (WARNING, "The channel layer is stuck; dropped: %(dropped hints)s"),
        "server.lags": (
            WARNING,
            "The event loop is %(lag_seconds).1f s late: polls are answered at once and asked to come back later",
        ),
        "worker.lags": (
            WARNING,
            "The event loop is %(lag_seconds).1f s late: async tasks that do not yield hold up all others",
        ),
        "worker.caught_up": (INFO, "The event loop keeps up again: %(lag_seconds).1f s late"),
        "server.caught_up": (INFO, "The event loop keeps up again: %(lag_seconds).1f s late"),
        "tokens.untouched": (
            WARNING,
            "The use of %(count tokens)s could not be noted (%(error)s)",
        ),
        "drain.began": (INFO, "Draining: answering %(held held requests)s"),
        "server.died": (
            ERROR,
            "Server process %(process)s of slot %(slot)s ended with code %(exit_code)s",
        ),
        "server.restarting": (
            INFO,
            "Replacing %(processes server processes)s, one after the other",
        ),
        "server.restarted": (INFO, "Replaced %(processes server processes)s"),
        "server.restart_failed": (
            ERROR,
            "The successor in slot %(slot)s did not start; the processes that serve stay as they are",
        ),
        "announcer.failed": (
            WARNING,
            "Queues %(queues names)s could not be announced (%(error)s); workers find the tasks by polling",
        ),
    }
)
# Events that come again and again while something lasts, and the fact that tells one trouble from another.
LASTING: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        "loop.failed": "loop",
        "loop.recovered": "loop",
        "listener.deaf": "application",
        "connection.silent": None,
        "database.unmigrated": None,
        "heartbeat.failed": None,
        "commit.retried": None,
        "hub.rebuilt": None,
    }
)
_FINISHED = "%(name)s %(id)s attempt %(attempt)s: %(verdict)s in %(duration_ms).0f ms%(then)s"


def install() -> Callable[[], None]:
    """Log events from now on, once per process. Gives the function that ends it."""
    return subscribe_once(_log)


_repeats = Repeats()


def ensure_shown() -> None:
    """Write lines from INFO up to stderr where no logging was set up: whoever started a worker wants to see it work.

    What libraries warn of there, the pool of connections for one, has the form of our own lines.
    """
    if logging.lastResort:
        logging.lastResort.setFormatter(formatter())
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(formatter())
        logger.addHandler(handler)
        logger.setLevel(INFO)


def _log(event: str, facts: dict[str, Any]) -> None:
    if event in _WRITTEN:
        _WRITTEN[event](facts)
        return
    if isinstance(facts.get("error"), Unmigrated):
        # Every loop meets it, and there is one thing to do about it.
        event = "database.unmigrated"
    level, line = LINES.get(event, (DEBUG, ""))
    if not logger.isEnabledFor(level) or not _is_news(event, facts):
        return
    if line:
        _write(level, event, line, facts)
    else:
        _write(level, event, "%(said)s", facts, said=f"{event} {facts}")


def _write(level: int, event: str, line: str, facts: dict[str, Any], **words: Any) -> None:
    """`line` for people, with `words` besides the facts; for programs the event and its facts, as they are."""
    logger.log(level, line, Facts(facts, **words), extra={"event": event, "facts": facts})


def _is_news(event: str, facts: dict[str, Any]) -> bool:
    if event not in LASTING:
        return True
    which = LASTING[event]
    return _repeats.is_news((event, facts[which] if which else None))


def _log_finished(facts: dict[str, Any]) -> None:
    """An error is what people look for; of what ended without one there is a line when that is committed."""
    level = WARNING if facts["error_type"] else DEBUG if facts["status"] in TERMINAL else INFO
    if logger.isEnabledFor(level):
        _write(level, "task.finished", _FINISHED, facts, **_verdict(facts))


def _verdict(facts: dict[str, Any]) -> dict[str, str]:
    """What became of an attempt, and what comes then."""
    verdict = facts["status"] or "does not count"
    if not facts["error_type"]:
        return {"verdict": verdict, "then": ""}
    why = f"({facts['error_type']}: {facts['error_message']})"
    if verdict != Status.PENDING:
        return {"verdict": f"{verdict} {why}", "then": ""}
    again = delay(facts["retry_in_seconds"])
    return {"verdict": f"failed {why}", "then": f"; tried again in {again}"}


def _log_stopped(facts: dict[str, Any]) -> None:
    """What a worker leaves behind is worth words only where it does."""
    left = {
        "that did not stop": facts["stragglers"],
        "whose end could not be written": facts["unwritten"],
    }
    words = ", ".join(
        f"{counted(count, 'tasks')} {which}" for which, count in left.items() if count
    )
    behind = words and f"; left behind: {words}"
    _write(INFO, "worker.stopped", "Worker %(id)s stopped%(behind)s", facts, behind=behind)


def _log_ordered(facts: dict[str, Any]) -> None:
    """One task of many: what was done to it on whose behalf, and what came of it."""
    line = "Bulk action %(order)s of %(by)s: %(verb)s of task %(id)s, which was %(status)s%(made)s"
    made = f"; the new one is {facts['new_id']}" if facts["new_id"] else ""
    _write(INFO, "order.task_done", line, facts, made=made)


def _log_failed_request(facts: dict[str, Any]) -> None:
    """As Django does it, for whoever has its handlers mail such reports."""
    request, error = facts["request"], facts["error"]
    about = {"method": request.method, "path": request.path}
    _requests.error(
        "Internal Server Error: %(path)s",
        Facts(about),
        exc_info=error,
        extra={"event": "request.failed", "facts": about, "request": request, "status_code": 500},
    )


_WRITTEN: Final[Mapping[str, Callable[[dict[str, Any]], None]]] = MappingProxyType(
    {
        "order.task_done": _log_ordered,
        "request.failed": _log_failed_request,
        "task.finished": _log_finished,
        "tasks.done": lambda facts: done.write(facts["ended"]),
        "worker.stopped": _log_stopped,
    }
)

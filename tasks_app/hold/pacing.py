"""How often a client that does not let itself be held should ask: as the plan of its tasks says, where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from asyncpoll.contract import Outcome
from tasks_app import conf
from tasks_app.hold.window import Window
from tasks_app.insights.plan import interval_at
from tasks_app.plans.book import book
from tasks_app.store import Snapshot


def poll_interval(rows: Iterable[Snapshot], outcome: Outcome, window: Window) -> float | None:
    """Seconds until the soonest of `rows` is to be asked for again; None: it was held, there is news, or a plan is
    not known. At most a hold, so that nobody is sent away for longer than it would have been kept."""
    if window.granted_seconds or outcome is not Outcome.STILL_RUNNING:
        return None
    intervals = [_interval(row) for row in rows]
    known = [interval for interval in intervals if interval is not None]
    if not known or len(known) < len(intervals):
        return None
    return min(*known, conf.current().MAX_HOLD_SECONDS)


def _interval(row: Snapshot) -> float | None:
    plan = book.known(row.name)
    if plan is None:
        return None
    # By this machine's clock: which interval it is may be off by as much as that is.
    elapsed = (
        0.0 if row.started_at is None else (datetime.now(UTC) - row.started_at).total_seconds()
    )
    return interval_at(plan, max(0.0, elapsed))

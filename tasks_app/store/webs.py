"""The verbs by which web processes say how they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import UUID

from tasks_app.store.call import Call


@dataclass(frozen=True, slots=True)
class WebFacts:
    """A web process. The wake latencies are seconds from commit to answer, of the `woken` last minute; None: of none."""

    id: UUID
    hostname: str
    pid: int
    held: int
    most_held: int
    draining: bool
    lag_seconds: float
    bridge: str
    linked: bool
    layered: bool
    woken: int
    wake_p50: float | None
    wake_p95: float | None


def report_web(facts: WebFacts) -> Call[float]:
    """Say how a web process is. Gives the time by the database's clock, in seconds since 1970."""
    return Call("report_web", asdict(facts), lambda rows: rows[0][0])


def retire_web(web: UUID) -> Call[None]:
    """Forget a web process."""
    return Call("retire_web", {"id": web}, lambda rows: None)

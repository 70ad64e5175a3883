"""How long and how patiently to wait."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from asyncpoll.client.errors import Misused
from asyncpoll.client.given import number, planned, seconds

_FROM_PLAN = {
    "timeout_seconds": "lifetime_seconds",
    "hold_seconds": "hold_seconds",
}


@dataclass(frozen=True, slots=True)
class PollPolicy:
    """The numbers behind the rules; durations are in seconds. Raises Misused for what can't be one.

    `lifetime_seconds` ends a wait, `call_seconds` any other call with all its retries. Budgets count what comes in a
    row, without a good answer between. After the n-th error the pause is `min(max_delay, base_delay * 2**n)` plus a
    random part as long again at most. A roll-over (the hold ran out, nothing happened) is no error: it has a budget of
    its own, and only the server's own hint between it and the next request.
    """

    lifetime_seconds: float = 600.0
    call_seconds: float = 60.0
    hold_seconds: float = 25.0
    base_delay: float = 1.0
    max_delay: float = 30.0
    error_budget: int = 20
    busy_budget: int = 60
    rollover_budget: int = 10_000
    connect_seconds: float = 10.0
    transfer_seconds: float = 60.0
    max_body_bytes: int = 32 * 1024 * 1024

    def __post_init__(self) -> None:
        for field in fields(self):
            check = seconds if isinstance(field.default, float) else number
            check(field.name, getattr(self, field.name))
        if self.base_delay == 0:
            raise Misused("base_delay is 0; retries without a pause are a storm: give 0.1 or more.")
        if self.max_delay < self.base_delay:
            raise Misused(
                f"max_delay is {self.max_delay}, less than base_delay {self.base_delay}; give that or more."
            )

    @classmethod
    def from_plan(cls, plan: object, **more: float) -> PollPolicy:
        """The policy for one task's entry of a polling file, an object or a mapping; what it does not say is the default.

        Named arguments win over the plan. Raises Misused for a plan that is none.
        """
        found: dict[str, Any] = {ours: planned(plan, theirs) for theirs, ours in _FROM_PLAN.items()}
        known = {name: value for name, value in found.items() if value is not None}
        return cls(**{**known, **more})

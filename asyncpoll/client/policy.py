"""How long and how patiently to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

_FROM_PLAN = {
    "timeout_seconds": "lifetime_seconds",
    "hold_seconds": "hold_seconds",
}


@dataclass(frozen=True, slots=True)
class PollPolicy:
    """The numbers behind the rules; durations are in seconds. Budgets count what comes in a row, without a good answer between.

    `lifetime_seconds` ends a wait, `call_seconds` any other call with all its retries. After the n-th error the pause is `min(max_delay, base_delay * 2**n)` plus a random part as long again at most. A
    roll-over (the hold ran out, nothing happened) is no error: it has a budget of its own, and only the server's own
    hint between it and the next request.
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
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{field.name} is {value!r}; it must be a number.")
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{field.name} is {value!r}; it must be finite and not negative.")
        if self.base_delay <= 0:
            raise ValueError(
                "base_delay is 0; retries without a pause are a storm: give 0.1 or more."
            )

    @classmethod
    def from_plan(cls, plan: object, **more: float) -> PollPolicy:
        """The policy for one task's entry of a polling file, an object or a mapping; what it does not say is the default.

        Named arguments win over the plan.
        """
        planned = {ours: planned_value(plan, theirs) for theirs, ours in _FROM_PLAN.items()}
        given = {name: value for name, value in planned.items() if value is not None}
        return cls(**{**given, **more})


def planned_value(plan: object, name: str) -> Any:
    """One value of a plan's entry; None where it has none."""
    return plan.get(name) if isinstance(plan, Mapping) else getattr(plan, name, None)

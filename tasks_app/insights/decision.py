"""Whether to poll, to wait in the request, or to be told: the decision table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot
from typing import Final

_LOW_SHARE, _HIGH_SHARE = 10.0, 30.0
_SHORT_SECONDS, _MEDIUM_SECONDS, _LONG_SECONDS = 15.0, 20.0, 60.0
# What is far: the distance between the table's own thresholds.
_SHARE_SPAN = _HIGH_SHARE - _LOW_SHARE
_SECONDS_SPAN = _LONG_SECONDS - _SHORT_SECONDS


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table: what it asks, in words, and what it answers.

    `misses` gives how far the share (in percent) and the P95 (in seconds) are from what it asks, and whether it fires.
    """

    asks: str
    answers: str
    fires: Callable[[float, float], bool]
    misses: Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class Decision:
    """The rule that fired for these inputs or, where the table leaves them open, the `nearest`.

    `p95_seconds` None: not known, and not needed for this rule.
    """

    share_percent: float
    p95_seconds: float | None
    rule: Rule
    nearest: bool

    @property
    def answer(self) -> str:
        """What to do."""
        return self.rule.answers

    @property
    def why(self) -> str:
        """The rule, and whether it fired or is the nearest."""
        if self.nearest:
            return f"nearest rule, as the table leaves this open: {self.rule.asks}"
        return f"rule: {self.rule.asks}"


def decide(share_percent: float, p95_seconds: float | None) -> Decision | None:
    """What the table says of so large a share of asynchronous cases and so long a P95.

    Of several rules that fire, the one that does most. Where none does, the one that is nearest, the cheaper of two
    that are equally near: the Euclidean distance by which the inputs miss a rule, in units of the table's own spans,
    20 points of share and 45 s of P95. None: P95 is not known, and the share alone does not decide.
    """
    if p95_seconds is None:
        return (
            Decision(share_percent, None, RULES[-1], False) if share_percent > _HIGH_SHARE else None
        )
    for rule in reversed(RULES):
        if rule.fires(share_percent, p95_seconds):
            return Decision(share_percent, p95_seconds, rule, nearest=False)
    nearest = min(RULES, key=lambda rule: rule.misses(share_percent, p95_seconds))
    return Decision(share_percent, p95_seconds, nearest, nearest=True)


def _far(share_points: float, seconds: float) -> float:
    return hypot(max(0.0, share_points) / _SHARE_SPAN, max(0.0, seconds) / _SECONDS_SPAN)


RULES: Final = (
    Rule(
        "share under 10 % and P95 under 15 s",
        "polling is enough",
        lambda share, p95: share < _LOW_SHARE and p95 < _SHORT_SECONDS,
        lambda share, p95: _far(share - _LOW_SHARE, p95 - _SHORT_SECONDS),
    ),
    Rule(
        "share from 10 to 30 % and P95 over 20 s",
        "add ?wait=true",
        lambda share, p95: _LOW_SHARE <= share <= _HIGH_SHARE and p95 > _MEDIUM_SECONDS,
        lambda share, p95: _far(
            max(_LOW_SHARE - share, share - _HIGH_SHARE), _MEDIUM_SECONDS - p95
        ),
    ),
    Rule(
        "share over 30 % or P95 over 60 s",
        "event-driven",
        lambda share, p95: share > _HIGH_SHARE or p95 > _LONG_SECONDS,
        lambda share, p95: min(_far(_HIGH_SHARE - share, 0.0), _far(0.0, _LONG_SECONDS - p95)),
    ),
)
"""From the one that does least to the one that does most."""

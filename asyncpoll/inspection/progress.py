"""Telling how far a walk over many items has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")
Report = Callable[[float, str], None]
"""Called with the overall progress, 0 to 1, and a message."""

REPORTS_PER_WALK = 100  # a reader can't tell finer steps apart, and each report costs a lock


@dataclass(frozen=True, slots=True)
class Walk:
    """Goes over items for somebody who hears how far it is. `check` is called before each item and may raise."""

    report: Report
    check: Callable[[], None]

    def over(
        self, items: Sequence[Item], span: tuple[float, float], message: str
    ) -> Iterator[Item]:
        """Yield `items`, reporting progress from `span[0]` to `span[1]` as each hundredth is done.

        `message` may use `{done}` and `{total}`.
        """
        start, end = span
        total = len(items)
        stride = max(1, total // REPORTS_PER_WALK)
        self.report(start, message.format(done=0, total=total))
        for done, item in enumerate(items, 1):
            self.check()
            yield item
            if done % stride == 0 or done == total:
                self.report(
                    round(start + (end - start) * done / total, 4),
                    message.format(done=done, total=total),
                )

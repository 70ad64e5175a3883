"""Looks at who has work give so many owners at once: whether there may be others."""

from __future__ import annotations

from collections.abc import Collection

from tasks_app.store import Lane
from tasks_app.store.claiming import MOST_LANES


class Round:
    """One way round all owners. It is over when a look gives only whom it has met already."""

    def __init__(self) -> None:
        self._met: set[Lane] = set()
        self.is_cut = False
        """The last look may have ended before the last owner."""
        self.goes_on = False
        """There may be owners whom this round has not met."""

    def restart(self) -> None:
        """Somebody may have got work behind where the round has come to."""
        self._met.clear()

    def meet(self, lanes: Collection[Lane]) -> None:
        """A look gave these."""
        self.is_cut = len(lanes) >= MOST_LANES
        self.goes_on = self.is_cut and not self._met.issuperset(lanes)
        self._met.update(lanes)

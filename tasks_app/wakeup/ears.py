"""Who in this process listens to one kind of news."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Ears(Generic[P]):
    """Functions that are called with each piece of news."""

    def __init__(self) -> None:
        self._all: list[Callable[P, None]] = []

    def subscribe(self, heard: Callable[P, None]) -> Callable[[], None]:
        """Have `heard` called from now on; gives the function that ends it."""
        self._all.append(heard)

        def end() -> None:
            if heard in self._all:
                self._all.remove(heard)

        return end

    def tell(self, *news: P.args, **more: P.kwargs) -> None:
        """Call them all."""
        for heard in tuple(self._all):
            heard(*news, **more)

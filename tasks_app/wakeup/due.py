"""What is heard of tasks that will be due, passed on to whoever promotes them in this process."""

from __future__ import annotations

import math
from collections.abc import Callable

Heard = Callable[[float], None]

_ears: list[Heard] = []


def subscribe(heard: Heard) -> Callable[[], None]:
    """Have `heard(seconds)` called when a task was stored that is due so much later; gives the function that ends it."""
    _ears.append(heard)

    def end() -> None:
        if heard in _ears:
            _ears.remove(heard)

    return end


def tell(seconds: float) -> None:
    """A task will be due then."""
    for heard in tuple(_ears):
        heard(seconds)


def heard(text: str) -> bool:
    """Pass on the seconds in a notification; False where `text` is no such number."""
    try:
        seconds = float(text)
    except ValueError:
        return False
    if not math.isnan(seconds):
        tell(seconds)
    return not math.isnan(seconds)

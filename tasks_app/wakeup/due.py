"""What is heard of tasks that will be due, passed on to whoever promotes them in this process."""

from __future__ import annotations

import math

from tasks_app.wakeup.ears import Ears

_ears: Ears[[float]] = Ears()

subscribe = _ears.subscribe
"""Have `heard(seconds)` called when a task was stored that is due so much later; gives the function that ends it."""
tell = _ears.tell
"""A task will be due in so many seconds."""


def heard(text: str) -> bool:
    """Pass on the seconds in a notification; False where `text` is no such number."""
    try:
        seconds = float(text)
    except ValueError:
        return False
    if not math.isnan(seconds):
        tell(seconds)
    return not math.isnan(seconds)

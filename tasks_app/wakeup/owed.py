"""That ends of tasks are to be told, passed on to whoever tells them in this process."""

from __future__ import annotations

from tasks_app.wakeup.ears import Ears

_ears: Ears[[]] = Ears()

subscribe = _ears.subscribe
"""Have `heard()` called when a delivery became due; gives the function that ends it."""
tell = _ears.tell
"""A delivery is due."""

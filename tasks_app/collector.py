"""Python's garbage collector, set up for a process that holds thousands of requests, or runs thousands of tasks a second."""

from __future__ import annotations

import gc

# A held request is some hundred objects that live long and form no cycles. At Python's own thresholds (700, 10, 10)
# looking through them again and again is a third of what a hold costs, and a sixth of what a worker spends on a task.
_THRESHOLDS = (10_000, 20, 50)


def calm_collector() -> None:
    """Look through what was imported and started never again, and through the rest less often. At the end of a start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)

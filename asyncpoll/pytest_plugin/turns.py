"""One run at a time reads and writes the plan: what two that end together measured is kept, of both."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TRIES = 100
_PAUSE_SECONDS = 0.05


@contextmanager
def turn(directory: Path) -> Iterator[None]:
    """Have `directory` to oneself, as far as the system knows of locks; after 5 s go on without."""
    try:
        import fcntl

        handle = os.open(directory, os.O_RDONLY)
    except (ImportError, OSError):
        # Windows has other locks, and a directory that is not there will be named when it is written to.
        yield
        return
    try:
        for _ in range(_TRIES):
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(handle)

"""What the exit code says."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """DONE, FAILED, GAVE_UP and USAGE are the command's own; the other two are what shells say of SIGINT and SIGPIPE."""

    DONE = 0
    FAILED = 1
    GAVE_UP = 2
    USAGE = 3
    INTERRUPTED = 130
    BROKEN_PIPE = 141

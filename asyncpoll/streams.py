"""The three standard streams, where whoever started the process closed them or they can't be written to."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

_NAMES = ("stdin", "stdout", "stderr")


def open_closed_ones() -> None:
    """Opens those of the standard streams that are closed, on nothing.

    Otherwise the next socket or file would get the free number, and what libraries print to it; and Python's own
    objects for them are None, which few look for before they write.
    """
    for number, name in enumerate(_NAMES):
        if _is_closed(number):
            # The lowest that is free, which is this one. Python's are not inherited, and children need the three as well.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def lose_what_stderr_cannot_take() -> None:
    """What a full disk, or a full pipe that doesn't block, doesn't take of stderr is lost and fails nothing: it accompanies
    what a command does."""
    if sys.stderr is not None:
        raw = _Losing(sys.stderr.fileno(), "w", closefd=False)
        encoding = sys.stderr.encoding
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(raw), encoding, line_buffering=True)


class _Losing(io.FileIO):
    _was_told = False

    def write(self, data: Any) -> int:
        try:
            # None: it would block, and somebody has set it not to.
            return super().write(data) or len(data)
        except OSError as error:
            # Nobody is left to do it for, as with `2>&1 | head`; once is enough, or the interpreter's end fails too.
            if isinstance(error, BrokenPipeError) and not self._was_told:
                self._was_told = True
                raise
            return len(data)


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False

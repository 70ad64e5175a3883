"""The three standard streams, where whoever started the process closed them."""

from __future__ import annotations

import os
import sys

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


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False

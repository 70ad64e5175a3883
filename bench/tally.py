"""Counts what tasks did in other processes, for about as little as it costs to look at the clock.

Each process that runs tasks has a small file of its own, mapped into its memory: when its first task and its latest
one ran, by the monotonic clock, and how many there were.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

FOLDER_VARIABLE = "BENCH_TALLY"

# The count comes last: whoever sees it sees the times that belong to it.
_RECORD = struct.Struct("ddQ")


class _Record:
    def __init__(self, file: Path) -> None:
        file.write_bytes(bytes(_RECORD.size))
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), _RECORD.size)
        self._first = time.monotonic()
        self._count = 0

    def add(self) -> None:
        self._count += 1
        _RECORD.pack_into(self._memory, 0, self._first, time.monotonic(), self._count)


_own: _Record | None = None


def count() -> None:
    """A task runs, in this process. The folder is the one that the environment names."""
    global _own
    if _own is None:  # not at import: a process that forks does it before
        _own = _Record(Path(os.environ[FOLDER_VARIABLE]) / str(os.getpid()))
    _own.add()


@dataclass(frozen=True, slots=True)
class Total:
    """How many tasks ran, and when the first and the latest one did, by the monotonic clock."""

    count: int = 0
    first: float = float("inf")
    last: float = 0.0


def total(folder: Path) -> Total:
    """What all processes counted so far."""
    sum_ = Total()
    for file in folder.iterdir():
        data = file.read_bytes()
        if len(data) == _RECORD.size:
            first, last, number = _RECORD.unpack(data)
            if number:
                sum_ = Total(sum_.count + number, min(sum_.first, first), max(sum_.last, last))
    return sum_

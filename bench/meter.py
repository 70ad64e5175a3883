"""What a server costs, seen from outside: CPU time, memory and threads of its process and of that one's children."""

from __future__ import annotations

import time

import psutil

from bench.errors import BenchError

# A server that has parked everybody still ticks; less than this share of a core is rest.
_RESTING_SHARE = 0.05
_LOOK_EVERY_SECONDS = 0.1
_LOOKS_AT_REST = 3


class Meter:
    """Reads the counters of one server, which may consist of several processes. Reading costs the server nothing."""

    def __init__(self, pid: int) -> None:
        root = psutil.Process(pid)
        self._processes = [root, *root.children(recursive=True)]

    def cpu_seconds(self) -> float:
        """CPU time used so far, in user mode and in the kernel, by all threads, also by those that have ended."""
        return sum(cpu_seconds(process.pid) for process in self._processes)

    def memory_bytes(self) -> int:
        """Memory that is the server's alone (USS)."""
        return sum(process.memory_full_info().uss for process in self._processes)

    def resident_bytes(self) -> int:
        """Resident memory (RSS), with what is shared."""
        return sum(process.memory_info().rss for process in self._processes)

    def threads(self) -> int:
        """Operating-system threads."""
        return sum(process.num_threads() for process in self._processes)

    def until_rest(self, within: float) -> float:
        """Wait until the server has nothing to do; its CPU time then. Raises BenchError after `within` seconds."""
        deadline = time.monotonic() + within
        resting, before = 0, self.cpu_seconds()
        while resting < _LOOKS_AT_REST:
            if time.monotonic() > deadline:
                raise BenchError(
                    f"The server was still busy after {within:.0f} s; hold fewer requests."
                )
            time.sleep(_LOOK_EVERY_SECONDS)
            now = self.cpu_seconds()
            resting = resting + 1 if now - before < _RESTING_SHARE * _LOOK_EVERY_SECONDS else 0
            before = now
        return before


def cpu_seconds(pid: int) -> float:
    """CPU time that a process on this machine used so far. Raises OSError if there is none of that id."""
    # The id of its clock, as clock_getcpuclockid(3) of Linux makes it: exact to the nanosecond.
    return time.clock_gettime((~pid << 3) | 2)

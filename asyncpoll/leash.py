"""Ends processes whose owner has died, even if it was killed without a chance to clean up.

A small process of its own reads from its owner which process groups to watch, over a pipe that only the owner
holds. The pipe's end is the owner's end. Run as a script, so that it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

# Longer than the drain of a web process and the release of a worker's tasks take.
GRACE_SECONDS = 8.0


class Leash:
    """Holds process groups on behalf of this process, until `close()`."""

    def __init__(self) -> None:
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,  # whoever reads ours must not wait for the watcher's end
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def hold(self, group: int) -> None:
        """End the process group `group` if this process dies."""
        self._say(f"+{group}")

    def release(self, group: int) -> None:
        """The process group `group` has ended; its number may be used again by others."""
        self._say(f"-{group}")

    def close(self) -> None:
        """Stop watching. Every group must have been released, or it is ended now."""
        assert self._watcher.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watcher.stdin.close()
        self._watcher.wait()

    def _say(self, line: str) -> None:
        assert self._watcher.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._watcher.stdin.write(f"{line}\n".encode())
            self._watcher.stdin.flush()


def end_groups(groups: Iterable[int], grace_seconds: float = GRACE_SECONDS) -> None:
    """Send SIGTERM to each group, and SIGKILL to what is left after `grace_seconds`."""
    left = {group for group in groups if signal_group(group, signal.SIGTERM)}
    deadline = time.monotonic() + grace_seconds
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = {group for group in left if signal_group(group, 0)}
    for group in left:
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; False if nobody is left in it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return False
    return True


def watch(lines: Iterable[str]) -> None:
    """Follow what the owner says until it says no more, then end what it still held."""
    held: set[int] = set()
    for line in lines:
        change = held.add if line[0] == "+" else held.discard
        change(int(line[1:]))
    end_groups(held)


if __name__ == "__main__":
    watch(sys.stdin)

"""Ctrl-C ends the process from a thread, and is never an exception.

Python raises one wherever the program happens to be: also inside of somebody's lock, which nobody then releases, so that
closing the client waits for ever; and not before a read is over that was about to begin. A thread hears of the signal
whatever the program is at, and leaves all locks alone.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from asyncpoll.cli.exits import Exit

_last_acts: list[Callable[[], object]] = []
# A terminal or a pipe that takes nothing would otherwise keep a process for ever that was told to end.
_LAST_SECONDS = 3.0


def hear() -> None:
    """From now on Ctrl-C ends this process. It doesn't where whoever started it wants it ignored, as nohup does."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    ears, mouth = socket.socketpair()
    mouth.setblocking(False)
    # At once and whatever the program is at, Python writes the number of a signal into the socket.
    signal.set_wakeup_fd(mouth.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_leave_on_signal, args=(ears,), daemon=True).start()
    # Last, so that one that comes before is an exception still, and not lost.
    signal.signal(signal.SIGINT, lambda *_: None)


@contextmanager
def before_leaving(act: Callable[[], object]) -> Iterator[None]:
    """Ctrl-C within it does this first; what was said last is done first. It runs in another thread."""
    _last_acts.append(act)
    try:
        yield
    finally:
        _last_acts.remove(act)


def _leave_on_signal(ears: socket.socket) -> None:
    try:
        ears.recv(1)
        acting = threading.Thread(target=_act_last, daemon=True)
        acting.start()
        acting.join(_LAST_SECONDS)
    finally:
        os._exit(Exit.INTERRUPTED)


def _act_last() -> None:
    for act in reversed(_last_acts.copy()):
        # Whatever one of them trips over, the next has its turn.
        with suppress(Exception):
            act()

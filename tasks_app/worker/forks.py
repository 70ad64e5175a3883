"""Processes that tasks fork, as multiprocessing does where it is not told otherwise."""

from __future__ import annotations

import os
import signal
import threading

_OURS = (signal.SIGTERM, signal.SIGINT)
_forking = threading.local()


def keep_signals_to_ourselves() -> None:
    """From now on a forked process ends by SIGTERM and SIGINT as any other does, and a signal to it is none to us.

    It begins with the pipe by which Python tells an event loop of signals: each `multiprocessing.Pool`, which ends its
    processes by SIGTERM, could stop the worker.
    """
    os.register_at_fork(before=_hold, after_in_parent=_go_on, after_in_child=_be_as_any_other)


def _hold() -> None:
    # Until the new process has handlers of its own; a signal to the worker goes to another of its threads meanwhile.
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _OURS)


def _go_on() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _be_as_any_other() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _go_on()

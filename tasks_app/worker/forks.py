"""Processes that tasks fork, as multiprocessing does where it is not told otherwise."""

from __future__ import annotations

import os
import signal


def keep_signals_to_ourselves() -> None:
    """From now on a forked process ends by SIGTERM and SIGINT as any other does, and a signal to it is none to us.

    It would share the pipe by which Python tells an event loop of signals, up to Python 3.11 at least: each
    `multiprocessing.Pool`, which ends its processes by SIGTERM, would stop the worker.
    """
    os.register_at_fork(after_in_child=_be_as_any_other)


def _be_as_any_other() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)

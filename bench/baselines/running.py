"""The command line of a baseline that lives on an event loop: the fastest one that is installed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

try:
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop

Verb = Callable[..., Coroutine[Any, Any, None]]


def run(**verbs: Verb) -> None:
    """Run the verb that the command line names, with the numbers that follow it."""
    verb, *numbers = sys.argv[1:]
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(verbs[verb](*map(int, numbers)))

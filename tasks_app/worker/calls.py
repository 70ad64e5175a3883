"""Calling a task's function: in a thread or on the loop, with clean database connections, never raising."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import close_old_connections, connections

from tasks_app import conf
from tasks_app.events import emit
from tasks_app.store import Claimed
from tasks_app.worker.outcome import Ending, raised, returned

# Postgres writes JSON without space around it; loads(), which looks for some, takes three times as long.
_decode = json.JSONDecoder().raw_decode


def arguments(claimed: Claimed) -> tuple[list[Any], dict[str, Any]]:
    """The stored arguments as the function gets them."""
    return _decode(claimed.args)[0], _decode(claimed.kwargs)[0]


def call(claimed: Claimed, func: Callable[..., Any]) -> Ending:
    """Call a sync function. Whatever it raises, SystemExit included, is the end of this attempt only."""
    try:
        args, kwargs = arguments(claimed)
        value = func(*args, **kwargs)
    except BaseException as error:
        return raised(error)
    return returned(claimed.name, value, conf.current().MAX_RESULT_BYTES)


async def acall(claimed: Claimed, func: Callable[..., Any]) -> Ending:
    """`call` for a coroutine function. A cancellation is an ending like any other."""
    try:
        args, kwargs = arguments(claimed)
        value = await func(*args, **kwargs)
    except BaseException as error:
        return raised(error)
    return returned(claimed.name, value, conf.current().MAX_RESULT_BYTES)


def call_in_thread(context: Context, claimed: Claimed, func: Callable[..., Any]) -> Ending:
    """`call` in a thread of the worker's: database connections that died or aged meanwhile are not used again."""
    try:
        close_old_connections()
    except Exception as error:
        # Whatever a database backend raises, it is the end of this attempt only.
        return raised(error)
    ending = context.run(call, claimed, func)
    with suppress(Exception):
        close_old_connections()
    return ending


def say_in_thread(say: Callable[[], None]) -> None:
    """Call `say` in a thread of the worker's, with clean database connections, never raising."""
    try:
        close_old_connections()
        say()
        close_old_connections()
    except BaseException as error:
        # A receiver may raise anything, and its thread has other ends to say.
        emit("task.end_unsaid", error=error)


class OwnThread:
    """Gives the sync calls of one async attempt (Django's async ORM makes them) a thread of their own, on demand.

    Without it all attempts of the process would share one thread, whose connection nobody could clean up.
    """

    __slots__ = ("_context",)

    def __init__(self) -> None:
        self._context = ThreadSensitiveContext()
        SyncToAsync.thread_sensitive_context.set(self._context)

    def end(self) -> None:
        """Close the thread's connections, in that thread, and let it go; a call that still runs is not waited for."""
        executor = SyncToAsync.context_to_thread_executor.pop(self._context, None)
        if executor is not None:
            executor.submit(connections.close_all)
            executor.shutdown(wait=False)

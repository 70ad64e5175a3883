"""What callers give, looked at before anything is sent. Each error names the value, the rule and the remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from numbers import Real
from os import PathLike
from typing import Any, Final
from uuid import UUID

from asyncpoll.client.errors import Misused

# The server shows no more of an id that it can't read.
_LONGEST_ID: Final = 60
# The server's own bound.
_LONGEST_KEY: Final = 255
# Thirty years: sockets and sleeps take little more.
_LONGEST_SECONDS: Final = 1e9
_REMAKE: Final = "make the polling file again with `asyncpoll plan` or `manage.py pollplan`"


def shown(value: object) -> str:
    """A value as messages show it, however long it is."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def number(
    name: str,
    value: Any,
    remedy: str = "give a number, finite and not negative",
    most: float = sys.float_info.max,
) -> float:
    """A number from 0. Raises Misused."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most:
        raise Misused(f"{name} is {shown(value)}; {remedy}.")
    return float(value)


def seconds(name: str, value: Any, why: str = "") -> float:
    """A duration. Raises Misused."""
    remedy = f"give seconds, from 0 to {_LONGEST_SECONDS:.0e}{why}"
    return number(name, value, remedy, _LONGEST_SECONDS)


def lifetime(value: Any) -> float:
    """How long a call may take. Raises Misused for one that would never end."""
    return seconds("lifetime", value, ": every wait ends")


def canonical(task_id: object) -> str:
    """An id as the server writes it, whichever way a UUID was written. Raises Misused."""
    text = str(task_id)
    if not isinstance(task_id, str | UUID | int) or not is_id(text):
        raise Misused(
            f"task_id is {shown(task_id)}; give the id of a task, as `submit` answered it."
        )
    try:
        return str(UUID(text))
    except ValueError:
        return text


def is_id(text: str) -> bool:
    """True if it may be the id of a task, as far as anybody can tell who is not the server."""
    return 1 <= len(text) <= _LONGEST_ID and text.isprintable()


def several(name: str, value: Any, what: str) -> tuple[Any, ...]:
    """Each of what was given. Raises Misused for a single text, and for what can't be iterated."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise Misused(f"{name} is {shown(value)}; give a list of {what}.")
    return tuple(value)


def texts(name: str, value: Any, what: str) -> tuple[str, ...]:
    """One text or more. Raises Misused."""
    found = several(name, value, what)
    if not found:
        raise Misused(f"{name} is empty; give a list of {what}.")
    for one in found:
        if not isinstance(one, str):
            raise Misused(f"{name} has {shown(one)}; give a list of {what}.")
    return found


def hooks(value: Any) -> tuple[Callable[..., Any], ...]:
    """Functions that nobody waits for. Raises Misused."""
    found = several("hooks", value, "functions")
    for one in found:
        if not callable(one) or iscoroutinefunction(one):
            raise Misused(
                f"hooks has {shown(one)}; give a list of functions, which are not awaited."
            )
    return found


def http(value: Any, kind: type[Any]) -> None:
    """A client of httpx's, blocking or for asyncio. Raises Misused for the other, and for anything else."""
    if not isinstance(value, kind):
        raise Misused(
            f"The client is of type {type(value).__name__}; give an httpx.{kind.__name__}, or use what is for the other."
        )


def callback(name: str, value: Any, is_awaited: bool) -> None:
    """A function, or None; a coroutine function only where it is awaited. Raises Misused."""
    if value is None or (callable(value) and (is_awaited or not iscoroutinefunction(value))):
        return
    kind = "a function" if is_awaited else "a function, which is not awaited"
    raise Misused(f"{name} is {shown(value)}; give {kind}.")


def name_of_task(value: Any) -> str:
    """The name that a task is submitted by. Raises Misused."""
    if isinstance(value, str) and value:
        return value
    raise Misused(f"task is {shown(value)}; give the name of a task as a text.")


def entry_id(value: Any) -> str:
    """The id of an entry of the inbox. Raises Misused."""
    if isinstance(value, str) and value and value.isprintable():
        return value
    raise Misused(f"entry is {shown(value)}; give an entry of the inbox, or its id.")


def idempotency_key(value: Any) -> str:
    """A key that fits into a header. Raises Misused."""
    if isinstance(value, str) and 1 <= len(value) <= _LONGEST_KEY and _is_plain(value):
        return value
    raise Misused(
        f"idempotency_key is {shown(value)}; give 1 to {_LONGEST_KEY} printable ASCII characters, with no blank at an end."
    )


def secret(name: str, value: Any) -> str | None:
    """A secret that fits into a header or a URL, or None. Raises Misused, which never shows it."""
    if value is None:
        return None
    if isinstance(value, str) and value and " " not in value and _is_plain(value):
        return value
    raise Misused(
        f"{name} is empty or has blanks or control characters, or is no text; give it as it was issued."
    )


def on_stale(value: Any) -> Any:
    """What to do about a task that is stuck. Raises Misused."""
    if value in ("raise", "retry") or callable(value):
        return value
    raise Misused(f"on_stale is {shown(value)}; give 'raise', 'retry' or a function of the error.")


def planned(plan: Any, name: str) -> float | None:
    """A number of a plan's entry; None where the entry, an object or a mapping, has none. Raises Misused."""
    entry = _entry(plan)
    value = entry.get(name) if isinstance(entry, Mapping) else getattr(entry, name, None)
    if value is None:
        return None
    return number(f"{name} of the plan", value, f"it must be a number, 0 or more; {_REMAKE}")


def _entry(plan: Any) -> Any:
    is_whole = "plans" in plan if isinstance(plan, Mapping) else hasattr(plan, "plans")
    if is_whole or isinstance(plan, str | bytes | PathLike | int | float | list | tuple):
        raise Misused(
            f"plan is {shown(plan)}; give one task's entry of a polling file: planfile.read(PATH).for_task(NAME)."
        )
    return plan


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()

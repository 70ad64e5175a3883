"""Waiting for endpoints that are not ours and only short-poll: ask, look at the status, ask again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Any, Final, Literal, TypeAlias

import httpx

from asyncpoll.client.address import Address
from asyncpoll.client.conversation import Conversation
from asyncpoll.client.drivers import AsyncDriver, Driver, Hook
from asyncpoll.client.errors import Misused, StaleResponseError
from asyncpoll.client.hosts import host_of
from asyncpoll.client.policy import PollPolicy, planned_value
from asyncpoll.client.polling import Rhythm, ShortPoll

Document: TypeAlias = Mapping[str, Any]
OnStale: TypeAlias = Literal["raise", "retry"] | Callable[[StaleResponseError], Any]

TERMINAL: Final = ("SUCCESS", "COMPLETED", "FAILED", "CANCELLED")
# An endpoint that answers at once is called dead sooner than one that holds.
_POLICY: Final = PollPolicy(hold_seconds=0, base_delay=0.5, max_delay=10)


def wait_for_terminal(
    client: httpx.Client,
    url: str,
    *,
    timeout: float = 80,
    interval: float = 0.4,
    max_interval: float = 5,
    growth: float = 1.8,
    plan: object = None,
    terminal: Iterable[str] = TERMINAL,
    heartbeat: bool = False,
    on_stale: OnStale = "raise",
    hooks: Iterable[Hook] = (),
) -> Document:
    """GET `url` until the `status` (or `state`) in its JSON is one of `terminal`, and give that JSON.

    The first five requests are `interval` seconds apart; each pause after that is `growth` times the one before, up to
    `max_interval`. A `plan`, one task's entry of a polling file, says all of that and the timeout instead, where it
    knows. Three answers in a row that are the same byte for byte mean that the task is stuck, if the endpoint is known
    to tell of progress: because you say so (`heartbeat`), or since two different unfinished answers were seen.
    `on_stale="raise"` then raises StaleResponseError, "retry" goes on, and a function gets the error and says what to
    return. Raises PollLifetimeExceeded after `timeout`, Refused and Unreachable as a Client does.
    """
    rhythm = Rhythm.planned(plan, Rhythm(interval, max_interval, growth))
    conversation = _conversation(
        client, ShortPoll(url, rhythm, terminal, heartbeat), _patience(timeout, plan), on_stale
    )
    try:
        return Driver(Address(), _POLICY, hooks, client).settle(conversation)  # type: ignore[no-any-return]
    except StaleResponseError as error:
        if callable(on_stale):
            return on_stale(error)  # type: ignore[no-any-return]
        raise


async def await_for_terminal(
    client: httpx.AsyncClient,
    url: str,
    *,
    timeout: float = 80,
    interval: float = 0.4,
    max_interval: float = 5,
    growth: float = 1.8,
    plan: object = None,
    terminal: Iterable[str] = TERMINAL,
    heartbeat: bool = False,
    on_stale: OnStale = "raise",
    hooks: Iterable[Hook] = (),
) -> Document:
    """`wait_for_terminal` for asyncio; `on_stale` may be a coroutine function."""
    rhythm = Rhythm.planned(plan, Rhythm(interval, max_interval, growth))
    conversation = _conversation(
        client, ShortPoll(url, rhythm, terminal, heartbeat), _patience(timeout, plan), on_stale
    )
    try:
        return await AsyncDriver(Address(), _POLICY, hooks, client).settle(conversation)  # type: ignore[no-any-return]
    except StaleResponseError as error:
        if callable(on_stale):
            instead = on_stale(error)
            return await instead if isawaitable(instead) else instead  # type: ignore[no-any-return]
        raise


def _conversation(
    client: httpx.Client | httpx.AsyncClient,
    question: ShortPoll,
    lifetime: float,
    on_stale: OnStale,
) -> Conversation:
    try:
        host = host_of(str(client.base_url.join(question.about)))
    except (ValueError, httpx.InvalidURL):
        # Not with their words, which may quote a password.
        raise Misused(f"url is {question.about!r}; give http(s)://HOST[:PORT]/PATH.") from None
    return Conversation(
        question, _POLICY, host, lifetime=lifetime, raise_when_stale=on_stale != "retry"
    )


def _patience(timeout: float, plan: object) -> float:
    return float(planned_value(plan, "timeout_seconds") or timeout)

"""Waiting for endpoints that are not ours and only short-poll: ask, look at the status, ask again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import httpx

from asyncpoll.client import given
from asyncpoll.client.address import Address
from asyncpoll.client.conversation import Conversation
from asyncpoll.client.drivers import AsyncDriver, Driver, Hook
from asyncpoll.client.errors import Misused
from asyncpoll.client.exchange import OnStale
from asyncpoll.client.hosts import Host, host_of
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.polling import Rhythm, ShortPoll

Document: TypeAlias = Mapping[str, Any]

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
    given.http(client, httpx.Client)
    rhythm = Rhythm(interval, max_interval, growth)
    conversation = _asking(
        client, url, timeout, rhythm, plan, terminal, heartbeat=heartbeat, on_stale=on_stale
    )
    return Driver(Address(), _POLICY, hooks, client).settle(conversation)


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
    given.http(client, httpx.AsyncClient)
    rhythm = Rhythm(interval, max_interval, growth)
    conversation = _asking(
        client, url, timeout, rhythm, plan, terminal, heartbeat=heartbeat, on_stale=on_stale
    )
    return await AsyncDriver(Address(), _POLICY, hooks, client).settle(conversation)


def _asking(
    client: httpx.Client | httpx.AsyncClient,
    url: str,
    timeout: float,
    rhythm: Rhythm,
    plan: object,
    terminal: Iterable[str],
    *,
    heartbeat: bool,
    on_stale: OnStale,
) -> Conversation[Document, Document]:
    if not isinstance(url, str):
        raise Misused(f"url is {given.shown(url)}; give it as a text.")
    patience = given.seconds("timeout", timeout)
    if plan is not None:
        patience = given.planned(plan, "timeout_seconds") or patience
    question = ShortPoll(url, Rhythm.planned(plan, rhythm), terminal, heartbeat)
    return Conversation(
        question, _POLICY, _host(client, question.about), lifetime=patience, on_stale=on_stale
    )


def _host(client: httpx.Client | httpx.AsyncClient, url: str) -> Host:
    try:
        return host_of(str(client.base_url.join(url)))
    except (ValueError, httpx.InvalidURL):
        # Not with their words, which may quote a password.
        raise Misused(f"url is {url!r}; give http(s)://HOST[:PORT]/PATH.") from None

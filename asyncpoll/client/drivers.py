"""The two drivers: they send, sleep and tell, as a conversation says, and decide nothing."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import aclosing, closing
from inspect import isawaitable
from threading import Lock
from typing import Any, ClassVar, Generic, TypeVar

import httpx

from asyncpoll.client import given
from asyncpoll.client.address import Address
from asyncpoll.client.clock import Clock
from asyncpoll.client.conversation import Conversation, N, V
from asyncpoll.client.deadline import within
from asyncpoll.client.errors import Misused
from asyncpoll.client.exchange import (
    Ask,
    Attempt,
    Done,
    Failure,
    GiveUp,
    Instead,
    News,
    Reply,
    Sleep,
)
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.wire import LIMITS, NO_REUSE, Exchange, TooLarge, timeouts, tls

Hook = Callable[[Attempt], object]
Http = TypeVar("Http", bound=httpx.Client | httpx.AsyncClient)

# What is no name of a host raises a UnicodeError where it would be looked up.
_BROKEN = (httpx.RequestError, TooLarge, TimeoutError, UnicodeError)
_logger = logging.getLogger("asyncpoll.client")


class AnyDriver(Generic[Http]):
    """Connections, and hooks that get every attempt once it is over."""

    _of: ClassVar[type[Any]]

    def __init__(
        self, to: Address, policy: PollPolicy, hooks: Iterable[Hook] = (), http: Http | None = None
    ) -> None:
        if http is not None:
            given.http(http, self._of)
        self.to = to
        self.policy = policy
        self._hooks = given.hooks(hooks)
        self._given: Http | None = http
        # By process: a child that was forked must not send on a connection of its parent's, or each reads what the
        # other asked for.
        self._made: dict[tuple[int, bool], Http] = {}
        self._making = Lock()

    def _http_for(self, ask: Ask) -> Http:
        """The given client, or one of our own; a second one, whose connections are all new, where that matters."""
        http = self._given or self._own(ask)
        if http.is_closed:
            raise Misused("The client has been closed; make another.")
        return http

    def _own(self, ask: Ask) -> Http:
        key = os.getpid(), ask.on_new_connection
        with self._making:
            if key not in self._made:
                limits = NO_REUSE if ask.on_new_connection else LIMITS
                self._made[key] = self._of(verify=tls(), limits=limits)
            return self._made[key]

    def _mine(self) -> tuple[Http, ...]:
        """Those of our own that this process made."""
        return tuple(http for (process, _), http in self._made.items() if process == os.getpid())

    def _request(self, http: Http, ask: Ask, trace: Callable[..., Any]) -> httpx.Request:
        return http.build_request(
            **self.to.sent(ask.request),
            timeout=timeouts(ask, self.policy),
            extensions={"trace": trace},
        )

    def _redirects(self, http: Http) -> int:
        """How many to follow, one by one: httpx would read the whole body of each, however long."""
        return http.max_redirects if self.to.follows(http) else 0

    def _tell(self, attempt: Attempt) -> None:
        """A hook that fails must not end a wait."""
        for hook in self._hooks:
            try:
                hook(attempt)
            except Exception:
                _logger.exception("A hook failed; the wait goes on.")


class Driver(AnyDriver[httpx.Client]):
    """Blocks."""

    _of = httpx.Client

    def converse(self, conversation: Conversation[N, V]) -> Generator[N, None, None]:
        """Carry out the steps of a conversation. Yields its news."""
        clock = Clock()
        step = conversation.begin(clock.now())
        with conversation.among_its_host():
            while not isinstance(step, Done):
                event = None
                match step:
                    case Ask():
                        event = self._send(step)
                    case Sleep():
                        clock.sleep(step.seconds)
                    case News():
                        yield from step.items
                    case Instead():
                        conversation.value = step.decide(step.error)
                        return
                    case GiveUp():
                        raise step.error
                step = conversation.next(event, clock.now())
                if event is not None:
                    self._tell(conversation.attempts[-1])

    def settle(self, conversation: Conversation[N, V], tell: Callable[[N], Any] | None = None) -> V:
        """The value that a conversation ends with. Its news go to `tell`."""
        given.callback("on_change", tell, is_awaited=False)
        with closing(self.converse(conversation)) as news:
            for item in news:
                if tell is not None:
                    tell(item)
        return conversation.value

    def close(self) -> None:
        """Close connections of our own."""
        for http in self._mine():
            http.close()

    def _send(self, ask: Ask) -> Reply | Failure:
        exchange = Exchange(ask, self.policy)
        http = self._http_for(ask)
        request = self._request(http, ask, exchange.trace)
        try:
            with within(ask.total_seconds):
                while True:
                    response = self._receive(http, request, exchange)
                    onward = exchange.onward(response, self._redirects(http))
                    if onward is None:
                        return exchange.reply(response)
                    request = onward
        except _BROKEN as error:
            return exchange.failure(error)

    def _receive(
        self, http: httpx.Client, request: httpx.Request, exchange: Exchange
    ) -> httpx.Response:
        with closing(http.send(request, stream=True, follow_redirects=False)) as response:
            is_to_come = exchange.begin(response)
            for chunk in response.iter_raw() if is_to_come else response.iter_bytes():
                exchange.add(chunk)
            return response


class AsyncDriver(AnyDriver[httpx.AsyncClient]):
    """Lets the event loop go on."""

    _of = httpx.AsyncClient
    _loop: asyncio.AbstractEventLoop | None = None

    async def converse(self, conversation: Conversation[N, V]) -> AsyncGenerator[N, None]:
        """Carry out the steps of a conversation. Yields its news."""
        clock = Clock()
        step = conversation.begin(clock.now())
        with conversation.among_its_host():
            while not isinstance(step, Done):
                event = None
                match step:
                    case Ask():
                        event = await self._send(step)
                    case Sleep():
                        await clock.asleep(step.seconds)
                    case News():
                        for item in step.items:
                            yield item
                    case Instead():
                        conversation.value = await _settled(step.decide(step.error))
                        return
                    case GiveUp():
                        raise step.error
                step = conversation.next(event, clock.now())
                if event is not None:
                    self._tell(conversation.attempts[-1])

    async def settle(
        self, conversation: Conversation[N, V], tell: Callable[[N], Any] | None = None
    ) -> V:
        """The value that a conversation ends with. Its news go to `tell`, which may be a coroutine function."""
        given.callback("on_change", tell, is_awaited=True)
        async with aclosing(self.converse(conversation)) as news:
            async for item in news:
                if tell is not None:
                    await _settled(tell(item))
        return conversation.value

    async def aclose(self) -> None:
        """Close connections of our own."""
        for http in self._mine():
            await http.aclose()

    async def _send(self, ask: Ask) -> Reply | Failure:
        self._stay_in(asyncio.get_running_loop())
        exchange = Exchange(ask, self.policy)
        http = self._http_for(ask)
        request = self._request(http, ask, exchange.atrace)
        try:
            async with asyncio.timeout(ask.total_seconds):
                while True:
                    response = await self._receive(http, request, exchange)
                    onward = exchange.onward(response, self._redirects(http))
                    if onward is None:
                        return exchange.reply(response)
                    request = onward
        except _BROKEN as error:
            return exchange.failure(error)

    async def _receive(
        self, http: httpx.AsyncClient, request: httpx.Request, exchange: Exchange
    ) -> httpx.Response:
        sending = http.send(request, stream=True, follow_redirects=False)
        async with aclosing(await sending) as response:
            is_to_come = exchange.begin(response)
            async for chunk in response.aiter_raw() if is_to_come else response.aiter_bytes():
                exchange.add(chunk)
            return response

    def _stay_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Connections can't be moved to another event loop."""
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise Misused("The client belongs to another event loop; make one in each.")


async def _settled(value: Any) -> Any:
    """What a function of the caller's gave, or what its coroutine gives."""
    return await value if isawaitable(value) else value

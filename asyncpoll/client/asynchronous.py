"""The client for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from inspect import isawaitable
from types import TracebackType
from typing import Any

import httpx

from asyncpoll.client.address import address
from asyncpoll.client.answer import Answer, InboxEntry, Milestone
from asyncpoll.client.calls import NOTIFY_SECONDS, Calls, Notify, Stale, notice, submission, wanted
from asyncpoll.client.drivers import AsyncDriver, Hook
from asyncpoll.client.errors import (
    AsyncpollError,
    NotifyFailed,
    PollLifetimeExceeded,
    StaleResponseError,
)
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.promises import Promises

_DEFAULT = PollPolicy()

OnStale = Stale | Callable[[StaleResponseError], Any]


async def settled(value: Any) -> Any:
    """What a callback gave, or what its coroutine gives."""
    return await value if isawaitable(value) else value


class AsyncClient:
    """`Client` for asyncio, where many waits go on at once. It belongs to the event loop that first uses it.

    `base_url` is where the server is, with the API's path if that is not `/api/v1/`. `token` goes with each request as
    Authorization, `ticket` reads one task without a token. `hooks` get every attempt once it is over. `http` is a
    client of your own (proxies, certificates); it is not closed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        ticket: str | None = None,
        policy: PollPolicy = _DEFAULT,
        hooks: Iterable[Hook] = (),
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._driver = AsyncDriver(address(base_url, token, ticket), policy, hooks, http)
        self._calls = Calls(self._driver.to, policy)
        self._promises = Promises()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._driver.to.base_url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. An `http` that was given is left open."""
        await self._driver.aclose()

    async def submit(
        self,
        task: str,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        queue: str | None = None,
        priority: int | None = None,
        run_at: datetime | str | None = None,
        max_attempts: int | None = None,
        timeout_seconds: float | None = None,
        idempotency_key: str | None = None,
        notify: Notify = None,
    ) -> Answer:
        """Submit a task, once however often it takes to send it. Raises Refused, NotifyFailed, Unreachable."""
        told = wanted(notify)
        fields = submission(
            args,
            kwargs,
            run_at,
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            timeout_seconds=timeout_seconds,
        )
        answer: Answer = await self._driver.settle(
            self._calls.submit(task, idempotency_key, fields)
        )
        if told is not None:
            try:
                await self._notify(answer.task_id, told)
            except AsyncpollError as error:
                raise NotifyFailed(
                    f"Task {answer.task_id} is submitted, but will not be told of: {error}", answer
                ) from error
        return answer

    async def get(self, task_id: object) -> Answer:
        """The task as it is, with its result or error once it is over. Raises TaskNotFound."""
        return await self._driver.settle(self._calls.get(task_id))  # type: ignore[no-any-return]

    async def cancel(self, task_id: object) -> Answer:
        """Ask for its end, as often as you like."""
        return await self._driver.settle(self._calls.cancel(task_id))  # type: ignore[no-any-return]

    async def wait(
        self,
        task_id: object,
        *,
        cursor: str | None = None,
        lifetime: float | None = None,
        on_change: Callable[[Answer], Any] | None = None,
        notify: Notify = None,
        on_stale: OnStale = "raise",
    ) -> Answer:
        """Wait for the task's end and give it, whether it succeeded or not.

        `cursor` is that of an earlier answer; `on_change` gets each answer that says something new; with `notify` a
        wait that is given up leaves a claim check. Where the task's heartbeat has stopped: `on_stale="raise"` raises
        StaleResponseError, "retry" waits on, and a function gets the error and says what to return.
        Raises PollLifetimeExceeded, TaskNotFound, TaskGone, Refused, Unreachable.
        """
        told = wanted(notify)
        conversation = self._calls.wait(task_id, cursor, lifetime, on_stale)
        try:
            async with aclosing(self._driver.converse(conversation)) as answers:
                async for answer in answers:
                    if on_change is not None:
                        await settled(on_change(answer))
        except StaleResponseError as error:
            if callable(on_stale):
                return await settled(on_stale(error))  # type: ignore[no-any-return]
            raise
        except PollLifetimeExceeded as error:
            await self._leave_claim_check(error, told)
            raise
        return conversation.value  # type: ignore[no-any-return]

    async def watch(
        self,
        task_id: object,
        *,
        cursor: str | None = None,
        lifetime: float | None = None,
        on_stale: Stale = "raise",
    ) -> AsyncIterator[Milestone]:
        """Every milestone as it comes, also those that passed already, until the task is over."""
        conversation = self._calls.watch(task_id, cursor, lifetime, on_stale)
        async with aclosing(self._driver.converse(conversation)) as milestones:
            async for milestone in milestones:
                yield milestone

    async def as_completed(
        self,
        task_ids: Iterable[object],
        *,
        lifetime: float | None = None,
        on_stale: Stale = "retry",
        linger_ms: int = 0,
    ) -> AsyncIterator[Answer]:
        """The tasks as they end, over one connection. Those that can't be waited for are raised last, as Refused."""
        many, conversation = self._calls.many(task_ids, lifetime, on_stale, linger_ms=linger_ms)
        async with aclosing(self._driver.converse(conversation)) as answers:
            async for answer in answers:
                yield answer
        many.raise_problem()

    async def wait_all(
        self,
        task_ids: Iterable[object],
        *,
        lifetime: float | None = None,
        on_stale: Stale = "retry",
        linger_ms: int = 250,
    ) -> list[Answer]:
        """The end of each, in the order asked for."""
        many, conversation = self._calls.many(task_ids, lifetime, on_stale, linger_ms=linger_ms)
        return many.in_order([answer async for answer in self._driver.converse(conversation)])

    async def wait_any(
        self,
        task_ids: Iterable[object],
        *,
        lifetime: float | None = None,
        on_stale: Stale = "retry",
    ) -> Answer:
        """The first that is over."""
        many, conversation = self._calls.many(task_ids, lifetime, on_stale, enough=1)
        async with aclosing(self._driver.converse(conversation)) as answers:
            return many.first(await anext(answers, None))

    async def notify(
        self, task_id: object, inbox: bool = False, webhook: str | None = None
    ) -> None:
        """Ask to be told of the task's end, in the inbox or at a webhook; at once if it is over."""
        await self._notify(task_id, notice(inbox, webhook))

    async def inbox(self, hold_seconds: float = 0) -> tuple[InboxEntry, ...]:
        """The ends that were asked for and not acknowledged; waits so long for one if there is none."""
        try:
            return await self._driver.settle(self._calls.inbox(hold_seconds))  # type: ignore[no-any-return]
        except PollLifetimeExceeded as error:
            if error.answer is None:
                raise
            return ()

    async def acknowledge(self, entry: InboxEntry | str) -> None:
        """Take an entry out of the inbox."""
        await self._driver.settle(self._calls.acknowledge(entry))

    async def _notify(
        self, task_id: object, told: Mapping[str, Any], lifetime: float | None = None
    ) -> None:
        await self._driver.settle(self._calls.notify(task_id, told, lifetime))
        self._promises.accepted(task_id, told)

    async def _leave_claim_check(
        self, error: PollLifetimeExceeded, told: Mapping[str, Any] | None
    ) -> None:
        if told is not None:
            try:
                await self._notify(error.task_id, told, NOTIFY_SECONDS)
            except AsyncpollError as refusal:
                error.add_note(f"The end will not be told of: {refusal}")
        self._promises.mark(error)

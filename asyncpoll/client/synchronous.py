"""The blocking client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from types import TracebackType
from typing import Any

import httpx

from asyncpoll.client.answer import Answer, InboxEntry, Milestone
from asyncpoll.client.calls import call_of
from asyncpoll.client.common import AnyClient
from asyncpoll.client.drivers import Driver
from asyncpoll.client.exchange import OnStale, Stale
from asyncpoll.client.promises import Notify


class Client(AnyClient[Driver, httpx.Client]):
    """Submits tasks and waits for them. Threads may share it."""

    _drives = Driver

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. An `http` that was given is left open."""
        self._driver.close()

    def submit(
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
        lifetime: float | None = None,
    ) -> Answer:
        """Submit a task, once however often it takes to send it.

        With `notify` its end is told there, or it is not submitted at all. `lifetime` is how long to try; the policy's
        `call_seconds`, if it is not given. Raises Refused, Unreachable.
        """
        fields = {
            **call_of(args, kwargs, run_at),
            "queue": queue,
            "priority": priority,
            "max_attempts": max_attempts,
            "timeout_seconds": timeout_seconds,
        }
        return self._driver.settle(
            self._calls.submit(task, idempotency_key, notify, lifetime, fields)
        )

    def get(self, task_id: object) -> Answer:
        """The task as it is, with its result or error once it is over. Raises TaskNotFound."""
        return self._driver.settle(self._calls.get(task_id))

    def cancel(self, task_id: object) -> Answer:
        """Ask for its end, as often as you like."""
        return self._driver.settle(self._calls.cancel(task_id))

    def wait(
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
        conversation = self._calls.wait(task_id, cursor, lifetime, notify, on_stale)
        return self._driver.settle(conversation, on_change)

    def watch(
        self,
        task_id: object,
        *,
        cursor: str | None = None,
        lifetime: float | None = None,
        on_stale: Stale = "raise",
    ) -> Iterator[Milestone]:
        """Every milestone as it comes, also those that passed already, until the task is over."""
        yield from self._driver.converse(self._calls.watch(task_id, cursor, lifetime, on_stale))

    def as_completed(
        self,
        task_ids: Iterable[object],
        *,
        lifetime: float | None = None,
        on_stale: Stale = "retry",
        linger_ms: float = 0,
    ) -> Iterator[Answer]:
        """The tasks as they end, over one connection. Those that can't be waited for are raised last, as Refused."""
        many, conversation = self._calls.many(task_ids, lifetime, on_stale, linger_ms=linger_ms)
        yield from self._driver.converse(conversation)
        many.raise_problem()

    def wait_all(
        self,
        task_ids: Iterable[object],
        *,
        lifetime: float | None = None,
        on_stale: Stale = "retry",
        linger_ms: float = 250,
    ) -> list[Answer]:
        """The end of each, in the order asked for."""
        many, conversation = self._calls.many(task_ids, lifetime, on_stale, linger_ms=linger_ms)
        return many.in_order(list(self._driver.converse(conversation)))

    def wait_any(
        self,
        task_ids: Iterable[object],
        *,
        lifetime: float | None = None,
        on_stale: Stale = "retry",
    ) -> Answer:
        """The first that is over."""
        many, conversation = self._calls.many(task_ids, lifetime, on_stale, enough=1)
        with closing(self._driver.converse(conversation)) as answers:
            return many.first(next(answers, None))

    def notify(self, task_id: object, inbox: bool = False, webhook: str | None = None) -> None:
        """Ask to be told of the task's end, in the inbox or at a webhook; at once if it is over."""
        self._driver.settle(self._calls.notify(task_id, inbox, webhook))

    def inbox(self, hold_seconds: float = 0) -> tuple[InboxEntry, ...]:
        """The ends that were asked for and not acknowledged; waits so long for one if there is none."""
        return self._driver.settle(self._calls.inbox(hold_seconds))

    def acknowledge(self, entry: InboxEntry | str) -> None:
        """Take an entry out of the inbox."""
        self._driver.settle(self._calls.acknowledge(entry))

"""The message centre as a client sees it: what is asked of it, and what the server has accepted to put there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TypeAlias

from asyncpoll.client.conversation import Conversation, N, V
from asyncpoll.client.errors import Misused, PollLifetimeExceeded
from asyncpoll.client.exchange import Done, Event, GiveUp, Step
from asyncpoll.client.given import canonical, shown

Notify: TypeAlias = bool | str | Mapping[str, Any] | None

_REMEMBERED: Final = 10_000


def wanted(notify: Notify) -> Mapping[str, Any] | None:
    """The body that asks to be told: True or "inbox" for the message centre, a URL for a webhook. Raises Misused."""
    if notify is None or notify is False:
        return None
    if notify is True or notify == "inbox":
        return {"inbox": True}
    if isinstance(notify, Mapping):
        return notify
    if isinstance(notify, str) and notify.startswith("https://"):
        return {"webhook": notify}
    raise Misused(
        f"notify is {shown(notify)}; give True or 'inbox' for the inbox, or the https:// URL of a webhook."
    )


def either(inbox: bool, webhook: str | None) -> Mapping[str, Any]:
    """The body that asks for one of both. Raises Misused for neither, or both."""
    if inbox is bool(webhook):
        raise Misused("Give either inbox=True or webhook='https://…'; ask twice for both.")
    return {"inbox": True} if inbox else {"webhook": webhook}


class Promises:
    """Of which tasks the server has accepted to put the end into the message centre: the latest of them."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, None] = OrderedDict()

    def accepted(self, task_id: object, told: Mapping[str, Any]) -> None:
        """The server has said yes. Only an inbox is a message centre; a webhook is for programs."""
        if told.get("inbox"):
            self._tasks[canonical(task_id)] = None
            while len(self._tasks) > _REMEMBERED:
                self._tasks.popitem(last=False)

    def mark(self, error: PollLifetimeExceeded) -> None:
        """Let an error promise what is true for all its tasks."""
        error.notified = all(task_id in self._tasks for task_id in error.unfinished)


class Promising(Conversation[N, V]):
    """A wait whose error promises no more than what the server has accepted.

    With a `claim`, a conversation that asks to be told of the end, that is asked for before the error is raised.
    """

    def __init__(
        self,
        *args: Any,
        promises: Promises,
        claim: Conversation[Any, Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._promises = promises
        self._claim = claim
        self._error: PollLifetimeExceeded | None = None

    @contextmanager
    def among_its_host(self) -> Iterator[None]:
        """With its claim."""
        claim = nullcontext() if self._claim is None else self._claim.among_its_host()
        with super().among_its_host(), claim:
            yield

    def next(self, event: Event, now: float) -> Step:
        """The next step of the wait, or of the claim after it."""
        if self._claim is not None and self._error is not None:
            return self._claimed(self._error, self._claim.next(event, now))
        step = super().next(event, now)
        if not isinstance(step, GiveUp) or not isinstance(step.error, PollLifetimeExceeded):
            return step
        if self._claim is None:
            self._promises.mark(step.error)
            return step
        self._error = step.error
        self._claim.attempts = self.attempts
        return self._claim.begin(now)

    def _claimed(self, error: PollLifetimeExceeded, step: Step) -> Step:
        if isinstance(step, GiveUp):
            error.add_note(f"The end will not be told of: {step.error}")
        elif not isinstance(step, Done):
            return step
        self._promises.mark(error)
        return GiveUp(error)

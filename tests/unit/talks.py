"""Conversations of the SDK with a clock that only the test moves."""

from __future__ import annotations

import json
from typing import Any

from asyncpoll.client.conversation import Conversation
from asyncpoll.client.exchange import (
    Ask,
    Event,
    Failure,
    FailureKind,
    GiveUp,
    News,
    Reply,
    Sleep,
    Step,
)
from asyncpoll.client.hosts import Host
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.questions import Question, UntilOver

TASK = "01a22cd1-5617-761b-bc92-fb57ee6aca68"


class Talk:
    """A conversation as a driver sees it. `step` is the step to carry out, `sleeps` all pauses so far."""

    def __init__(
        self,
        question: Question | None = None,
        policy: PollPolicy | None = None,
        *,
        host: Host | None = None,
        chance: float = 0.0,
        **more: Any,
    ) -> None:
        self.now = 1_000.0
        self.sleeps: list[float] = []
        self.news: list[Any] = []
        self.conversation = Conversation(
            question or UntilOver(TASK),
            policy or PollPolicy(),
            host or Host(),
            chance=lambda: chance,
            **more,
        )
        self.step: Step = self.conversation.begin(self.now)

    @property
    def ask(self) -> Ask:
        """The request to send."""
        assert isinstance(self.step, Ask), self.step
        return self.step

    @property
    def hold(self) -> float:
        """The hold that it asks for."""
        return float(dict(self.ask.request.query)["max_hold_seconds"])

    @property
    def error(self) -> Any:
        """The error to raise."""
        assert isinstance(self.step, GiveUp), self.step
        return self.step.error

    def hear(self, event: Event, seconds: float = 0.0) -> Talk:
        """Something came after so many seconds; carries out what follows up to the next request, or the end."""
        self.now += seconds
        self.step = self.conversation.next(event, self.now)
        while isinstance(self.step, Sleep | News):
            if isinstance(self.step, Sleep):
                self.sleeps.append(self.step.seconds)
                self.now += self.step.seconds
            else:
                self.news.extend(self.step.items)
            self.step = self.conversation.next(None, self.now)
        return self

    def answer(
        self, version: int = 1, status: str = "RUNNING", *, seconds: float = 0.0, **more: Any
    ) -> Talk:
        """An answer about the task."""
        document = {"task_id": TASK, "status": status, "version": version, **more}
        return self.reply(200, document, seconds=seconds)

    def rolled_over(self, version: int = 1, seconds: float = 24.0, backoff_ms: int = 100) -> Talk:
        """The hold ran out."""
        return self.answer(
            version,
            seconds=seconds,
            outcome="STILL_RUNNING",
            recommended_client_backoff_ms=backoff_ms,
            hold_granted_ms=24_000,
        )

    def reply(
        self, status: int, document: Any = None, *, seconds: float = 0.0, **headers: str
    ) -> Talk:
        """Any answer; a document that is text goes as it is."""
        body = document if isinstance(document, bytes) else json.dumps(document or {}).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.hear(Reply(status, named, body, seconds), seconds)

    def fail(self, kind: FailureKind = FailureKind.CUT, seconds: float = 1.0, **more: Any) -> Talk:
        """No answer."""
        return self.hear(Failure(kind, "it went wrong", seconds, **more), seconds)


def problem(status: int, kind: str = "about:blank") -> dict[str, Any]:
    """A problem document."""
    return {"type": kind, "status": status, "title": "No", "detail": "the reason"}

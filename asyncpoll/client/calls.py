"""What a client can ask for, as conversations. Shared by both clients; sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from asyncpoll.client import given
from asyncpoll.client.address import Address
from asyncpoll.client.answer import Answer, InboxEntry, Milestone, read_answer, split_cursor
from asyncpoll.client.conversation import Conversation
from asyncpoll.client.errors import Misused
from asyncpoll.client.exchange import OnStale, Request, Stale
from asyncpoll.client.given import canonical
from asyncpoll.client.hosts import host_of
from asyncpoll.client.many import Many
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.promises import Notify, Promises, Promising, either, wanted
from asyncpoll.client.questions import EveryMilestone, Inbox, Once, Question, UntilOver

# A client that has given up asks this long to be told later.
_NOTIFY_SECONDS: Final = 10.0


class Calls:
    """Builds the conversation for each call. Raises Misused for what can't be asked."""

    def __init__(self, to: Address, policy: PollPolicy) -> None:
        if not isinstance(policy, PollPolicy):
            raise Misused(f"policy is {given.shown(policy)}; give PollPolicy(…).")
        self._to = to
        self._policy = policy
        self._promises = Promises()

    def submit(
        self,
        task: str,
        key: str | None,
        notify: Notify,
        lifetime: float | None,
        fields: Mapping[str, Any],
    ) -> Conversation[Any, Answer]:
        """One task, however often it is sent: each try has the same key."""
        told = wanted(notify)
        key = str(uuid4()) if key is None else given.idempotency_key(key)
        task = given.name_of_task(task)
        body = {"task": task, **fields, "notify": told}
        request = Request(
            "submit",
            "POST",
            "tasks",
            headers=(("Idempotency-Key", key),),
            body={name: value for name, value in body.items() if value is not None},
        )

        def read(document: Mapping[str, Any]) -> Answer:
            answer = read_answer(document)
            self._promises.accepted(answer.task_id, told or {})
            return answer

        remedy = (
            "whether the task is stored is not known; look whether the server is well and has this address, and submit "
            f"it again with the idempotency key {key!r}, with which it is one task"
        )
        question = Once(request, f"the submission of {task}", read, remedy)
        return self._conversation(question, lifetime)

    def get(self, task_id: object) -> Conversation[Any, Answer]:
        """The task as it is."""
        return self._about("get", "GET", task_id, "")

    def cancel(self, task_id: object) -> Conversation[Any, Answer]:
        """Ask for its end."""
        return self._about("cancel", "POST", task_id, "/cancel")

    def wait(
        self,
        task_id: object,
        cursor: str | None,
        lifetime: float | None,
        notify: Notify,
        on_stale: OnStale,
    ) -> Conversation[Answer, Answer]:
        """Follow it to its end; on giving up, ask to be told of it."""
        task_id, known = _from(task_id, cursor)
        told = wanted(notify)
        claim = None if told is None else self._notify(task_id, told, _NOTIFY_SECONDS)
        return self._wait(UntilOver(task_id, known), lifetime, on_stale, claim)

    def watch(
        self, task_id: object, cursor: str | None, lifetime: float | None, on_stale: Stale
    ) -> Conversation[Milestone, Answer]:
        """Every milestone, from the first or after the cursor's."""
        return self._wait(EveryMilestone(*_from(task_id, cursor)), lifetime, on_stale)

    def many(
        self,
        task_ids: Iterable[object],
        lifetime: float | None,
        on_stale: Stale,
        *,
        enough: int | None = None,
        linger_ms: float = 0,
    ) -> tuple[Many, Conversation[Answer, None]]:
        """Wait for many tasks."""
        question = Many(task_ids, enough=enough, linger_ms=linger_ms, at_once=self._to.most_tasks)
        self._to.tickets_for(question.unfinished)
        return question, self._wait(question, lifetime, on_stale)

    def notify(
        self, task_id: object, inbox: bool, webhook: str | None
    ) -> Conversation[Any, Mapping[str, Any]]:
        """Ask to be told of its end."""
        return self._notify(task_id, either(inbox, webhook))

    def inbox(self, hold_seconds: float) -> Conversation[Any, tuple[InboxEntry, ...]]:
        """What ended and was not acknowledged."""
        return self._conversation(Inbox(given.seconds("hold_seconds", hold_seconds)))

    def acknowledge(self, entry: InboxEntry | str) -> Conversation[Any, Mapping[str, Any]]:
        """Take an entry out of the inbox."""
        entry_id = given.entry_id(entry.id if isinstance(entry, InboxEntry) else entry)
        request = Request("acknowledge", "POST", f"inbox/{quote(entry_id, safe='')}/ack")
        return self._conversation(Once(request, f"inbox entry {entry_id}", dict))

    def _notify(
        self, task_id: object, told: Mapping[str, Any], lifetime: float | None = None
    ) -> Conversation[Any, Mapping[str, Any]]:
        def read(document: Mapping[str, Any]) -> Mapping[str, Any]:
            self._promises.accepted(task_id, told)
            return document

        return self._about("notify", "POST", task_id, "/notify", told, read, lifetime)

    def _about(
        self,
        kind: str,
        method: str,
        task_id: object,
        path: str,
        body: Mapping[str, Any] | None = None,
        read: Callable[[Mapping[str, Any]], Any] = read_answer,
        lifetime: float | None = None,
    ) -> Conversation[Any, Any]:
        about = canonical(task_id)
        path = f"tasks/{quote(about, safe='')}{path}"
        request = Request(kind, method, path, body=body, tasks=(about,) if method == "GET" else ())
        return self._conversation(Once(request, about, read), lifetime)

    def _wait(
        self,
        question: Question,
        lifetime: float | None,
        on_stale: OnStale,
        claim: Conversation[Any, Any] | None = None,
    ) -> Conversation[Any, Any]:
        more = {"on_stale": on_stale, "promises": self._promises, "claim": claim}
        return self._conversation(question, lifetime, Promising, **more)

    def _conversation(
        self,
        question: Question,
        lifetime: float | None = None,
        kind: Callable[..., Conversation[Any, Any]] = Conversation,
        **more: Any,
    ) -> Conversation[Any, Any]:
        host, base_url = host_of(self._to.base_url), self._to.base_url
        return kind(question, self._policy, host, base_url=base_url, lifetime=lifetime, **more)


def call_of(
    args: Sequence[Any], kwargs: Mapping[str, Any] | None, run_at: datetime | str | None
) -> dict[str, Any]:
    """The fields of a submission that say what is called, and when; None where there is nothing to say.

    Raises Misused.
    """
    if isinstance(run_at, datetime):
        if run_at.tzinfo is None:
            raise Misused(f"run_at is {run_at}; give it a time zone.")
        run_at = run_at.isoformat()
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise Misused(f"kwargs is {given.shown(kwargs)}; give a mapping of names to values.")
    listed = list(given.several("args", args, "values"))
    return {"args": listed or None, "kwargs": kwargs, "run_at": run_at}


def _from(task_id: object, cursor: str | None) -> tuple[str, int]:
    """A task, and the version of it that is known."""
    about = canonical(task_id)
    if cursor is None:
        return about, 0
    of, version = split_cursor(cursor)
    if of != about:
        raise Misused(f"cursor is {cursor!r}, which is of another task than {about}.")
    return about, version

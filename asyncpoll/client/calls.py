"""What a client can ask for, as conversations. Shared by both drivers; sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote
from uuid import uuid4

from asyncpoll.client.address import Address
from asyncpoll.client.answer import InboxEntry, canonical, split_cursor
from asyncpoll.client.conversation import Conversation
from asyncpoll.client.errors import Misused
from asyncpoll.client.exchange import Request
from asyncpoll.client.hosts import host_of
from asyncpoll.client.many import Many
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.questions import EveryMilestone, Inbox, Once, Question, UntilOver

Notify: TypeAlias = bool | str | Mapping[str, Any] | None
Stale: TypeAlias = Literal["raise", "retry"]

# A client that has given up asks this long to be told later.
NOTIFY_SECONDS: Final = 10.0


class Calls:
    """Builds the conversation for each call."""

    def __init__(self, to: Address, policy: PollPolicy) -> None:
        self._to = to
        self._policy = policy

    def submit(self, task: str, key: str | None, fields: Mapping[str, Any]) -> Conversation:
        """One task, however often it is sent: each try has the same key."""
        body = {
            "task": task,
            **{name: value for name, value in fields.items() if value is not None},
        }
        headers = (("Idempotency-Key", key or str(uuid4())),)
        request = Request("submit", "POST", "tasks", headers=headers, body=body)
        return self._conversation(Once(request, f"the submission of {task}"))

    def get(self, task_id: object) -> Conversation:
        """The task as it is."""
        return self._once("get", "GET", task_id, "")

    def cancel(self, task_id: object) -> Conversation:
        """Ask for its end."""
        return self._once("cancel", "POST", task_id, "/cancel")

    def wait(
        self, task_id: object, cursor: str | None, lifetime: float | None, on_stale: Any
    ) -> Conversation:
        """Follow it to its end."""
        known = _version(canonical(task_id), cursor)
        return self._conversation(UntilOver(canonical(task_id), known), lifetime, on_stale)

    def watch(
        self, task_id: object, cursor: str | None, lifetime: float | None, on_stale: Any
    ) -> Conversation:
        """Every milestone, from the first or after the cursor's."""
        known = _version(canonical(task_id), cursor)
        return self._conversation(EveryMilestone(canonical(task_id), known), lifetime, on_stale)

    def many(
        self,
        task_ids: Iterable[object],
        lifetime: float | None,
        on_stale: Any,
        *,
        enough: int | None = None,
        linger_ms: int = 0,
    ) -> tuple[Many, Conversation]:
        """Wait for many tasks."""
        question = Many(task_ids, enough=enough, linger_ms=linger_ms)
        return question, self._conversation(question, lifetime, on_stale)

    def notify(
        self, task_id: object, wanted: Mapping[str, Any], lifetime: float | None = None
    ) -> Conversation:
        """Ask to be told of its end."""
        return self._once("notify", "POST", task_id, "/notify", wanted, lifetime)

    def inbox(self, hold_seconds: float) -> Conversation:
        """What ended and was not acknowledged."""
        return self._conversation(Inbox(hold_seconds))

    def acknowledge(self, entry: InboxEntry | str) -> Conversation:
        """Take an entry out of the inbox."""
        entry_id = entry.id if isinstance(entry, InboxEntry) else entry
        request = Request("acknowledge", "POST", f"inbox/{quote(entry_id, safe='')}/ack")
        return self._conversation(Once(request, f"inbox entry {entry_id}", dict))

    def _once(
        self,
        kind: str,
        method: str,
        task_id: object,
        path: str,
        body: Mapping[str, Any] | None = None,
        lifetime: float | None = None,
    ) -> Conversation:
        about = canonical(task_id)
        request = Request(kind, method, f"tasks/{quote(about, safe='')}{path}", body=body)
        question = Once(request, about, dict) if kind == "notify" else Once(request, about)
        return self._conversation(question, lifetime)

    def _conversation(
        self, question: Question, lifetime: float | None = None, on_stale: Any = "raise"
    ) -> Conversation:
        return Conversation(
            question,
            self._policy,
            host_of(self._to.base_url),
            base_url=self._to.base_url,
            lifetime=lifetime,
            raise_when_stale=on_stale != "retry",
        )


def submission(
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    run_at: datetime | str | None,
    **more: Any,
) -> dict[str, Any]:
    """The fields of a submission. Raises Misused for a time without a zone."""
    if isinstance(run_at, datetime):
        if run_at.tzinfo is None:
            raise Misused(f"run_at is {run_at}; give it a time zone.")
        run_at = run_at.isoformat()
    return {"args": list(args) or None, "kwargs": kwargs, "run_at": run_at, **more}


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
        f"notify is {notify!r}; give True or 'inbox' for the inbox, or the https:// URL of a webhook."
    )


def notice(inbox: bool, webhook: str | None) -> Mapping[str, Any]:
    """The body that asks for either. Raises Misused for neither, or both."""
    if inbox is bool(webhook):
        raise Misused("Give either inbox=True or webhook='https://…'; ask twice for both.")
    return {"inbox": True} if inbox else {"webhook": webhook}


def _version(task_id: str, cursor: str | None) -> int:
    if cursor is None:
        return 0
    of, version = split_cursor(cursor)
    if of != task_id:
        raise Misused(f"cursor is {cursor!r}, which is of another task than {task_id}.")
    return version

"""A pool that answers as it is told and remembers what it was asked; an attempt's book of steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any
from uuid import UUID

import orjson

from asyncpoll.contract import Status
from tasks_app.stepbook import StepBook, known
from tasks_app.store import Call, Committed


class FakePool:
    """`answers` are used one per call: a value, an exception to raise, or a function of the call. Then `default`."""

    def __init__(self, default: Callable[[Call[Any]], Any]) -> None:
        self.calls: list[Call[Any]] = []
        self.locked: set[UUID] = set()
        self.written: list[Committed] = []
        self.answers: list[Any] = []
        self.default = default
        self.open = asyncio.Event()
        self.open.set()
        # Where it names a statement, the others don't wait for `open`.
        self.only: str | None = None

    def of(self, statement: str) -> list[Call[Any]]:
        """The calls of one statement."""
        return [call for call in self.calls if call.statement == statement]

    async def run(self, call: Call[Any]) -> Any:
        """Answer, once `open` is set. Of what is missing from an answer, the `locked` tasks are held all the same; of
        what got no answer, the `written` ones are committed, and no claim took anything."""
        if call.statement == "holds":
            return self.locked & set(said(call)["ids"])
        if call.statement == "find_committed":
            return [task for task in self.written if task.id in said(call)["ids"]]
        if call.statement == "give_back":
            return []
        self.calls.append(call)
        # A database never answers before the loop has gone round.
        await asyncio.sleep(0)
        if self.only in (None, call.statement):
            await self.open.wait()
        answer = self.answers.pop(0) if self.answers else self.default
        if callable(answer) and not isinstance(answer, type):
            answer = answer(call)
        if isinstance(answer, Exception):
            raise answer
        return answer


def said(call: Call[Any]) -> Mapping[str, Any]:
    """What a call says, in columns: of a claim its shares, of a commit the changes, their milestones in order, and their steps."""
    if call.statement == "claim":
        shares = orjson.loads(call.params["shares"])
        return {name: [share[name] for share in shares] for name in ("queue", "owner", "quota")}
    if call.statement != "commit":
        return call.params
    changes, earlier, steps = (
        orjson.loads(call.params[name]) for name in ("changes", "earlier", "steps")
    )
    return {
        "ids": [UUID(change["id"]) for change in changes],
        "attempts": [change["attempt"] for change in changes],
        "statuses": [change["status"] for change in changes],
        "bumps": [change["bump"] for change in changes],
        "progress": [change["progress"] for change in changes],
        "messages": [change.get("message") for change in changes],
        "results": [change["result"] for change in changes],
        "error_messages": [change.get("error_message", "") for change in changes],
        "event_kinds": [
            kind
            for change in changes
            for kind in (
                *(event["kind"] for event in earlier if event["id"] == change["id"]),
                change["kind"],
            )
        ],
        "step_ids": [UUID(step["id"]) for step in steps],
        "step_names": [step["name"] for step in steps],
        "step_results": [step["result"] for step in steps],
    }


def all_committed(call: Call[Any]) -> list[Committed]:
    """Every change of a commit took effect."""
    return [
        Committed(task_id, Status(status), 3)
        for task_id, status in zip(said(call)["ids"], said(call)["statuses"], strict=True)
    ]


class FakeBook(StepBook):
    """Keeps what steps gave, as JSON text by name."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, str] = {}

    def find(self, name: str) -> Future[str | None]:
        return known(self.kept.get(name))

    def record(self, name: str, result: str) -> Future[None]:
        self.kept[name] = result
        return known(None)

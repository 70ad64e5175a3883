"""A steady stream of commits, waiters for each of them at every web process, and how late each was answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from uuid import UUID

import psycopg
from uuid_utils.compat import uuid7

from asyncpoll.contract import Status
from tasks_app.store import NewTask, enqueue, step
from tasks_app.store.pool import execute
from tests.fleet.webs import AWAY, Web
from tests.holdsite.client import Connection
from tests.support import aeventually

COMMIT_EVERY_SECONDS = 0.04
# Between a waiter's tries at a process that is away.
TRY_EVERY_SECONDS = 0.1
PROMISE_SECONDS = 3.0
_TASKS = 10
_SOME = 30
# Between a commit and its answer: two servers, the bridge, the hub and its reader, the test itself.
_HANDS = 6
_MOST_EXCUSE_SECONDS = 1.0


@dataclass(slots=True)
class Lateness:
    """What a stream recorded: seconds from commit to answer, by web process; and how slow the machine was meanwhile."""

    by_web: dict[int, list[float]] = field(default_factory=dict)
    slowness: float = 0.0

    def worst(self, but: Iterable[Web] = ()) -> float:
        """The latest answer of any web process, `but` those that could not have answered."""
        exempt = {web.number for web in but}
        return max(max(late) for number, late in self.by_web.items() if number not in exempt)

    async def goes_on(self, webs: Iterable[Web]) -> None:
        """Wait until each of them has answered more changes than a moment's."""
        wanted = {web.number: len(self.by_web.get(web.number, ())) + _SOME for web in webs}
        await aeventually(
            lambda: all(
                len(self.by_web.get(number, ())) >= count for number, count in wanted.items()
            )
        )

    def keeps_the_promise(self, but: Iterable[Web] = (), within: float = PROMISE_SECONDS) -> None:
        """Nobody was answered later than promised, apart from what this machine took to do anything at all."""
        worst, excuse = self.worst(but), self.excuse
        assert worst <= within + excuse, (
            f"{worst:.2f} s after its commit; {excuse:.2f} s are the machine's"
        )

    @property
    def excuse(self) -> float:
        """What a slow machine accounts for; no more than this, or a fault would hide behind it."""
        return min(_HANDS * self.slowness, _MOST_EXCUSE_SECONDS)


@asynccontextmanager
async def stream(database_url: str, webs: Iterable[Web]) -> AsyncIterator[Lateness]:
    """Commit, wait and record until the block ends; then every waiter gets what is still owed to it."""
    lateness = Lateness()
    flow = _Flow(database_url, lateness)
    await flow.prepare()
    webs = list(webs)
    waiters = [asyncio.create_task(flow.wait(web, task)) for web in webs for task in flow.tasks]
    others = [asyncio.create_task(flow.commit()), asyncio.create_task(flow.watch_machine())]
    try:
        yield lateness
        # Those that are owed an answer have this long to be found late.
        others[0].cancel()
        await asyncio.sleep(COMMIT_EVERY_SECONDS)
        await flow.settle(webs)
    finally:
        for task in (*waiters, *others):
            task.cancel()
        await asyncio.gather(*waiters, *others, return_exceptions=True)


class _Flow:
    def __init__(self, database_url: str, lateness: Lateness) -> None:
        self._url = database_url
        self._lateness = lateness
        self._committed: dict[tuple[UUID, int], float] = {}
        self._latest: dict[UUID, int] = {}
        self._seen: dict[tuple[int, UUID], int] = {}
        self._running = asyncio.Event()
        self.tasks = [uuid7() for _ in range(_TASKS)]

    async def prepare(self) -> None:
        rows = [
            NewTask(task, "sample.add", "outside", "", 0, "[]", "{}", 3, 600.0)
            for task in self.tasks
        ]
        async with await self._connect() as connection:
            await execute(connection, enqueue(rows))
        self._latest = dict.fromkeys(self.tasks, 1)

    async def commit(self) -> None:
        """Change one task after the other, for ever; a database that is away is asked again."""
        while True:
            with suppress(psycopg.OperationalError):
                async with await self._connect() as connection:
                    await self._commit_on(connection)
            await asyncio.sleep(COMMIT_EVERY_SECONDS)

    async def _commit_on(self, connection: psycopg.AsyncConnection) -> None:
        while True:
            for task in self.tasks:
                version = await execute(connection, step(task, Status.RUNNING))
                assert version is not None
                self._committed[task, version] = time.monotonic()
                self._latest[task] = version
                await asyncio.sleep(COMMIT_EVERY_SECONDS)

    async def wait(self, web: Web, task: UUID) -> None:
        """Poll one task at one web process, for ever. An error, or a lost connection, is no answer: it makes late."""
        while True:
            with suppress(*AWAY):
                connection = await Connection.open(web.port)
                try:
                    await self._poll(connection, web, task)
                finally:
                    connection.hang_up()
            await asyncio.sleep(TRY_EVERY_SECONDS)

    async def _poll(self, connection: Connection, web: Web, task: UUID) -> None:
        while True:
            known = self._seen.get((web.number, task), 1)
            answer = await connection.get(
                f"/api/v1/tasks/{task}/long_poll?client_known_version={known}&max_hold_seconds=10"
            )
            if answer.status != 200:
                await asyncio.sleep(TRY_EVERY_SECONDS)
                continue
            version = answer.json["version"]
            if version > known:
                late = time.monotonic() - self._first_commit(task, known + 1, version)
                self._lateness.by_web.setdefault(web.number, []).append(late)
                self._seen[web.number, task] = version

    def _first_commit(self, task: UUID, first: int, last: int) -> float:
        """When the first of these versions was committed, of those whose commit was confirmed."""
        times = (self._committed.get((task, version)) for version in range(first, last + 1))
        return min((at for at in times if at is not None), default=time.monotonic())

    async def settle(self, webs: list[Web]) -> None:
        """Wait until every process that runs has answered the last commit; who never did is late by all that time."""
        deadline = time.monotonic() + PROMISE_SECONDS + 2
        while (owed := self._owed(webs)) and time.monotonic() < deadline:
            await asyncio.sleep(COMMIT_EVERY_SECONDS)
        now = time.monotonic()
        for number, task in owed:
            late = now - self._committed[task, self._latest[task]]
            self._lateness.by_web.setdefault(number, []).append(late)

    def _owed(self, webs: list[Web]) -> list[tuple[int, UUID]]:
        return [
            (web.number, task)
            for web in webs
            for task in self.tasks
            if web.process.poll() is None
            and self._seen.get((web.number, task), 1) < self._latest[task]
        ]

    async def watch_machine(self) -> None:
        """How much later than asked this process itself gets to run: that is nobody's lateness."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.05)
            overslept = time.monotonic() - before - 0.05
            self._lateness.slowness = max(self._lateness.slowness, overslept)

    async def _connect(self) -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(self._url, autocommit=True)

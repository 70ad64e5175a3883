"""A fleet: web processes, three as a rule, Valkey, and a Postgres server of their own."""

from __future__ import annotations

import asyncio
import math
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgpack
import psycopg

from tests.databases import migrate
from tests.fleet.redis_server import RedisServer
from tests.fleet.stream import Lateness, stream
from tests.fleet.webs import Web, Webs, gate
from tests.postgres import Postgres, own_postgres
from tests.support import aeventually

PROCESSES = 3
PARTS = ("leader", "standby", "own")
# Connections of a process's pool, at most.
POOL = 4


@dataclass(slots=True)
class Fleet:
    """What the scenarios share."""

    postgres: Postgres
    redis: RedisServer
    webs: Webs
    gate: Path
    """Closes the layer of a fleet whose layer can be overrun."""
    shares_layer: bool = True
    _tasks: dict[str, float] = field(default_factory=dict)

    @asynccontextmanager
    async def stream(self, webs: Webs | None = None) -> AsyncIterator[Lateness]:
        """Commits, waiters at `webs` (all), and their lateness. What all had before the first is what is theirs to have."""
        if not self._tasks:
            await self.webs.leader()
            self._tasks = await self._fewest_tasks()
        async with stream(self.postgres.url, self.webs if webs is None else webs) as lateness:
            yield lateness

    def mend(self) -> None:
        """Undo whatever was done to it and does not end by itself."""
        self.redis.resume()
        self.gate.unlink(missing_ok=True)
        for web in self.webs:
            web.mend()

    async def overrun(self, slow: Web) -> None:
        """Stop a process, and send it more than the server keeps for it, so that it is cut off; then continue it."""
        self.redis.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0")
        (group,) = re.findall(r"\S*__group__\S+", self.redis.ask("PUBSUB", "CHANNELS"))
        padding = msgpack.packb({"type": "padding", "padding": "x" * 8_000})
        slow.signal(signal.SIGSTOP)
        while self.redis.subscribers() == len(self.webs):
            await asyncio.to_thread(self.redis.ask_often, 200, "PUBLISH", group, padding)
        slow.signal(signal.SIGCONT)

    def but(self, web: Web) -> Webs:
        """All processes but one."""
        return Webs(other for other in self.webs if other is not web)

    async def leaves_nothing_behind(self) -> None:
        """Wait until everybody is well, says so, and has the connections and the asyncio tasks that it had before."""
        await self.webs.leader()
        await self.webs.show(code=200, link="up", layer="up")
        await aeventually(self._has_its_connections)
        await aeventually(self._has_its_tasks)

    async def _has_its_tasks(self) -> bool:
        tasks = await self._tasks_by_part()
        return tasks.keys() == self._tasks.keys() and all(
            count <= self._tasks[part] for part, count in tasks.items()
        )

    async def _fewest_tasks(self) -> dict[str, float]:
        """Of several looks: some come and go."""
        looks = [await self._tasks_by_part() for _ in range(5)]
        return {part: min(look.get(part, math.inf) for look in looks) for part in looks[0]}

    async def _tasks_by_part(self) -> dict[str, float]:
        """The most asyncio tasks that any process with the same part in the bridge has."""
        tasks: dict[str, float] = {}
        for web in self.webs:
            scrape = await web.scrape()
            part = next((p for p in PARTS if scrape.value("bridge", part=p)), "away")
            tasks[part] = max(tasks.get(part, 0), scrape.value("event_loop_tasks"))
        return tasks

    async def _has_its_connections(self) -> bool:
        listening = "application_name = 'asyncpoll listener'"
        async with await psycopg.AsyncConnection.connect(self.postgres.url) as connection:
            cursor = await connection.execute(
                f"SELECT count(*) FILTER (WHERE {listening}), count(*) FILTER (WHERE NOT {listening}) "
                "FROM pg_stat_activity WHERE application_name LIKE 'asyncpoll %'"
            )
            listeners, others = await cursor.fetchone()
        count = len(self.webs)
        return (
            (listeners, self.redis.subscribers()) == (count, count * self.shares_layer)
            and others <= POOL * count
            and self.redis.clients() <= 2 * count
        )


@contextmanager
def started(
    directory: Path,
    settings: str = "tests.settings",
    processes: int = PROCESSES,
    shares_layer: bool = True,
) -> Iterator[Fleet]:
    """Start all of it; ended at the end. `directory` is for its logs."""
    with own_postgres() as database:
        migrate(database.url)
        redis = RedisServer(directory)
        redis.start()
        webs = Webs(
            Web(number, database, redis, directory, settings) for number in range(processes)
        )
        try:
            for web in webs:
                web.start()
            yield Fleet(database, redis, webs, gate(directory), shares_layer)
        finally:
            for web in webs:
                web.close()
            redis.kill()

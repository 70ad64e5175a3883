"""A fleet of web processes with Redis between them, and everything that can go wrong there, under load.

Each scenario: commits every 40 ms, waiters for them at every process. Nobody waits longer than 3 s past a commit, the
trouble shows in /readyz, and the fleet is well again without a restart.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgpack
import psycopg
import pytest

from tests.databases import migrate
from tests.fleet.redis_server import RedisServer
from tests.fleet.stream import stream
from tests.fleet.webs import Web, Webs
from tests.postgres import Postgres, own_postgres
from tests.support import aeventually

PROCESSES = 3
# Packets are dropped by a filter that only Linux has.
FAULTS = ["stall", *(["blackhole"] if sys.platform == "linux" else [])]
# How soon a bridge is succeeded that died, and one that froze.
DEATH_SECONDS = 1.0
FREEZING_SECONDS = 6.0
# Connections of a process's pool, at most.
POOL = 4


@dataclass(slots=True)
class Fleet:
    """What the scenarios share."""

    postgres: Postgres
    redis: RedisServer
    webs: Webs

    def stream(self):
        """Commits, waiters and their lateness."""
        return stream(self.postgres.url, self.webs)

    def but(self, web: Web) -> Webs:
        """All processes but one."""
        return Webs(other for other in self.webs if other is not web)

    async def leaves_nothing_behind(self) -> None:
        """Wait until everybody is well and has the connections that it had before."""
        await self.webs.leader()
        await aeventually(self._has_its_connections)

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
            (listeners, self.redis.subscribers()) == (count, count)
            and others <= POOL * count
            and self.redis.clients() <= 2 * count
        )


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Three web processes, Valkey, and a Postgres server of their own."""
    directory = tmp_path_factory.mktemp("fleet")
    with own_postgres() as database:
        migrate(database.url)
        redis = RedisServer(directory)
        redis.start()
        webs = Webs(Web(number, database, redis, directory) for number in range(PROCESSES))
        try:
            for web in webs:
                web.start()
            yield Fleet(database, redis, webs)
        finally:
            for web in webs:
                web.close()
            redis.kill()


@pytest.fixture(autouse=True)
def mended(fleet: Fleet) -> Iterator[None]:
    """A test that failed half-way leaves its fault to nobody."""
    yield
    fleet.redis.resume()
    for web in fleet.webs:
        web.mend()


async def test_one_process_relays_and_every_process_answers_at_once(fleet):
    """No faults: whoever waits, wherever, is woken by its commit."""
    await fleet.webs.leader()
    async with fleet.stream() as lateness:
        await lateness.goes_on(fleet.webs)
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    for web in fleet.webs:
        ordered = sorted(lateness.by_web[web.number])
        # Every sweep would have been up to a second late.
        assert ordered[len(ordered) // 2] < 0.25
    await fleet.leaves_nothing_behind()


async def test_a_killed_server_costs_a_delay_and_is_joined_again(fleet):
    """While it is away every process stays ready and answers from its sweep."""
    await fleet.webs.leader()
    async with fleet.stream() as lateness:
        fleet.redis.kill()
        for web in fleet.webs:
            await web.shows(code=200, link="down", layer="down", bridge="standby")
        await lateness.goes_on(fleet.webs)
        await asyncio.to_thread(fleet.redis.start)
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    await fleet.leaves_nothing_behind()


async def test_a_frozen_server_is_noticed_though_no_connection_ends(fleet):
    """SIGSTOP: half open, which no client library reports."""
    await fleet.webs.leader()
    async with fleet.stream() as lateness:
        fleet.redis.pause()
        for web in fleet.webs:
            await web.shows(code=200, link="down", layer="down")
        await lateness.goes_on(fleet.webs)
        fleet.redis.resume()
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    await fleet.leaves_nothing_behind()


async def test_a_killed_leader_is_succeeded(fleet):
    """Its lock goes with its connection."""
    leader = await fleet.webs.leader()
    others = fleet.but(leader)
    try:
        async with stream(fleet.postgres.url, others) as lateness:
            leader.kill()
            await others.leader()
            await lateness.goes_on(others)
    finally:
        leader.start()
    lateness.keeps_the_promise(within=DEATH_SECONDS)
    await fleet.leaves_nothing_behind()


async def test_a_frozen_leader_is_succeeded_and_stands_by_when_it_wakes(fleet):
    """For a moment there are two, and the older epoch changes nothing."""
    frozen = await fleet.webs.leader()
    others = fleet.but(frozen)
    async with fleet.stream() as lateness:
        frozen.signal(signal.SIGSTOP)
        began = time.monotonic()
        successor = await others.leader()
        assert time.monotonic() - began <= FREEZING_SECONDS + lateness.excuse
        await lateness.goes_on(others)
        frozen.signal(signal.SIGCONT)
        await frozen.shows(bridge="standby", link="up")
        assert await fleet.webs.leader() is successor
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise(but=[frozen])
    await fleet.leaves_nothing_behind()


async def test_a_leader_that_reaches_postgres_but_not_redis_makes_room(fleet):
    """It does not hear its own beat, and does not try again before its layer is back."""
    leader = await fleet.webs.leader()
    async with fleet.stream() as lateness:
        async with Webs([leader]).log("makes room for another"):
            leader.redis.cut()
        await leader.shows(code=200, bridge="standby", link="down", layer="down")
        await fleet.but(leader).leader()
        await lateness.goes_on(fleet.webs)
        leader.redis.mend()
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    await fleet.leaves_nothing_behind()


async def test_restarting_postgres_costs_a_delay(fleet):
    """Every connection is gone; the lock is fought for anew."""
    await fleet.webs.leader()
    async with fleet.stream() as lateness:
        await asyncio.to_thread(fleet.postgres.restart)
        await lateness.goes_on(fleet.webs)
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    await fleet.leaves_nothing_behind()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_leaders_listening_connection_that_goes_silent_is_replaced(fleet, fault):
    """Everything else works meanwhile. Its old session is half open, and ended so that the lock is free."""
    leader = await fleet.webs.leader()
    async with fleet.stream() as lateness:
        async with fleet.webs.log("This process relays wake-ups for all"):
            getattr(leader.listening, fault)()
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    leader.listening.mend()
    await fleet.leaves_nothing_behind()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_redis_connection_that_goes_silent_is_replaced(fleet, fault):
    """One process's alone."""
    deaf = fleet.but(await fleet.webs.leader())[0]
    async with fleet.stream() as lateness:
        getattr(deaf.redis, fault)()
        await deaf.shows(link="down")
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    deaf.redis.mend()
    await fleet.leaves_nothing_behind()


async def test_a_process_that_reads_too_slowly_is_cut_off_and_comes_back(fleet):
    """The server keeps so much for a subscriber and no more; what it dropped is a gap."""
    slow = fleet.but(await fleet.webs.leader())[0]
    fleet.redis.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0")
    (group,) = re.findall(r"\S*__group__\S+", fleet.redis.ask("PUBSUB", "CHANNELS"))
    padding = msgpack.packb({"type": "padding", "padding": "x" * 8_000})
    async with fleet.stream() as lateness:
        slow.signal(signal.SIGSTOP)
        while fleet.redis.subscribers() == PROCESSES:
            await asyncio.to_thread(fleet.redis.ask_often, 200, "PUBLISH", group, padding)
        slow.signal(signal.SIGCONT)
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise(but=[slow])
    await fleet.leaves_nothing_behind()

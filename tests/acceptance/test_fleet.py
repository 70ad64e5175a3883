"""A fleet of web processes with Redis between them, and everything that can go wrong there, under load.

Each scenario: commits every 40 ms, waiters for them at every process. Nobody waits longer than 3 s past a commit, the
trouble shows in /readyz and in metrics, and the fleet is well again without a restart, with the connections and the
asyncio tasks that it had before. Where the link is mended as soon as its loss is noticed, it is down in /readyz for an
instant that no look can be sure to meet; the loss itself stays counted in each process's metrics.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.fleet import Fleet, started
from tests.fleet.webs import Webs

# Packets are dropped by a filter that only Linux has.
IS_LINUX = sys.platform == "linux"
FAULTS = ["stall", *(["blackhole"] if IS_LINUX else [])]
GIVEN_UP = "The connection died: [Errno 110] Connection timed out"
# How soon a bridge is succeeded that died, and one that froze.
DEATH_SECONDS = 1.0
FREEZING_SECONDS = 6.0


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Three web processes, Valkey, and a Postgres server of their own. TCP keepalive ends what is silent to Valkey."""
    with started(tmp_path_factory.mktemp("fleet"), "tests.fleet.keepalive_settings") as fleet:
        yield fleet


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Fleet]:
    """One web process, whose layer in memory can be overrun."""
    settings = "tests.fleet.gated_settings"
    with started(tmp_path, settings, processes=1, shares_layer=False) as fleet:
        yield fleet


@pytest.fixture(autouse=True)
def mended(fleet: Fleet) -> Iterator[None]:
    """A test that failed half-way leaves its fault to nobody."""
    yield
    fleet.mend()


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
        await fleet.webs.show(code=200, link="down", layer="down", bridge="standby")
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
        await fleet.webs.show(code=200, link="down", layer="down")
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
        async with fleet.stream(others) as lateness:
            async with others.losing_the_link():
                leader.kill()
            successor = await others.leader()
            await successor.shows(code=200, bridge="leader", link="up")
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
        await others.show(code=200, link="down", layer="up", bridge="standby")
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
        async with fleet.webs.losing_the_link():
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
        async with fleet.webs.losing_the_link():
            getattr(leader.listening, fault)()
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    leader.listening.mend()
    await fleet.leaves_nothing_behind()


async def test_a_redis_connection_that_goes_silent_is_replaced(fleet):
    """One process's alone."""
    deaf = fleet.but(await fleet.webs.leader())[0]
    async with fleet.stream() as lateness:
        deaf.redis.stall()
        await deaf.shows(code=200, link="down")
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    deaf.redis.mend()
    await fleet.leaves_nothing_behind()


@pytest.mark.skipif(not IS_LINUX, reason="packets are dropped by a filter that only Linux has")
async def test_a_redis_connection_that_the_kernel_gives_up_is_replaced(fleet):
    """Blackholed until TCP keepalive ends it: with redis-py's own connections that process would never run anything
    again. The link that rebuilt its side just before leaves keepalive the time; it has to be first once."""
    deaf = fleet.but(await fleet.webs.leader())[0]
    before = deaf.logged().count(GIVEN_UP)
    async with fleet.stream() as lateness:
        while deaf.logged().count(GIVEN_UP) == before:
            deaf.redis.blackhole()
            await deaf.shows(code=200, link="down")
            await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise()
    deaf.redis.mend()
    await fleet.leaves_nothing_behind()


async def test_an_overrun_layer_in_memory_costs_a_delay(alone):
    """It drops what it has no room for and says nothing; the gap does."""
    await alone.webs.leader()
    async with alone.stream() as lateness:
        async with alone.webs.log("No room for a message"):
            alone.gate.touch()
        await alone.webs.show(code=200, link="down")
        await lateness.goes_on(alone.webs)
        alone.gate.unlink()
        await alone.webs.leader()
        await lateness.goes_on(alone.webs)
    lateness.keeps_the_promise()
    await alone.leaves_nothing_behind()


async def test_a_process_that_reads_too_slowly_is_cut_off_and_comes_back(fleet):
    """The server keeps so much for a subscriber and no more; what it dropped is a gap."""
    slow = fleet.but(await fleet.webs.leader())[0]
    async with fleet.stream() as lateness:
        async with Webs([slow]).losing_the_link():
            await fleet.overrun(slow)
        await fleet.webs.leader()
        await lateness.goes_on(fleet.webs)
    lateness.keeps_the_promise(but=[slow])
    await fleet.leaves_nothing_behind()

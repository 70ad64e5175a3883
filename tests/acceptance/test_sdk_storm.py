"""Five hundred clients and more, and servers that are killed for five seconds and come back: real sockets, real time.

One server is ours. The other one is scripted and therefore stricter: it is back in a moment, however many there are it
keeps up with all of them, and it tells nobody to come later.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import httpx
import pytest

from asyncpoll.client import AsyncClient, AsyncpollError, PollPolicy
from asyncpoll.client.exchange import Attempt
from asyncpoll.client.hosts import forget_hosts
from asyncpoll.client.testing import Act, Received, ScriptedServer, answer, still_running
from tests.acceptance.processes import server
from tests.acceptance.workers import Queue
from tests.sample_tasks import add
from tests.scraping import Scrape
from tests.support import aeventually

CLIENTS = 500
CLIENTS_OF_OURS = 100
# Long enough for a crowd that fails at one moment, and only backs off, to be more than twice the steady rate.
HOLD = 5.0
DEAD_SECONDS = 5.0
# On a machine that is busy with other things as well: of fewer clients, chance has a larger part in what a window has.
WINDOW_SECONDS = 2.0
WINDOW_SECONDS_OF_OURS = 4.0
# At twice the rate of a client for which all is well, they would take two and a half minutes.
NAIVE_REQUESTS = 60


def well_behaved(received: Received) -> Act:
    """What our own server does with a task that nothing happens to."""
    if received.query["client_known_version"] != "1":
        return answer(version=1)
    granted = received.hold_seconds * (1 - random.random() / 16)
    return still_running(after=granted, backoff_ms=100 if granted else 1200)


@dataclass
class Crowd:
    """Clients of one server: when each request of theirs was sent, and when each of them was answered last."""

    url: str
    tasks: Sequence[object]
    window_seconds: float
    sent: list[float] = field(default_factory=list)
    answered: dict[int, float] = field(default_factory=dict)

    async def wait(self, number: int) -> None:
        """One client of its own, which starts at a moment of its own within the first hold."""
        await asyncio.sleep(number / len(self.tasks) * HOLD)
        policy = PollPolicy(hold_seconds=HOLD, lifetime_seconds=600)

        def note(attempt: Attempt) -> None:
            self.sent.append(time.monotonic() - attempt.seconds)
            if attempt.status == 200:
                self.answered[number] = time.monotonic()

        async with AsyncClient(self.url, policy=policy, hooks=[note]) as client:
            with suppress(AsyncpollError):
                await client.wait(self.tasks[number])

    async def until_answered(self, since: float = 0.0) -> None:
        """Until each of them has had an answer since then."""
        await aeventually(
            lambda: sum(at > since for at in self.answered.values()) == len(self.tasks), 120
        )

    def sent_since(self, since: float) -> int:
        """How many requests of theirs have ended, one way or another."""
        return sum(at > since for at in self.sent)

    def worst(self, since: float) -> float:
        """The requests of the fullest window since then, as a multiple of those of a window in which all is well."""
        windows = Counter((at - since) // self.window_seconds for at in self.sent if at >= since)
        return max(windows.values()) / (len(self.tasks) / HOLD * self.window_seconds)


async def naive(crowd: Crowd) -> list[float]:
    """A client that asks again at once when there was no answer; it stops before it harms the others. Gives when it was
    not answered."""
    failures: list[float] = []
    url = f"{crowd.url}/api/v1/tasks/{crowd.tasks[0]}/long_poll"
    async with httpx.AsyncClient(verify=False) as client:
        while len(failures) < NAIVE_REQUESTS:
            try:
                await client.get(url, params={"client_known_version": 1, "max_hold_seconds": HOLD})
            except httpx.TransportError:
                failures.append(time.monotonic())
    return failures


async def counted_by(url: str) -> float:
    """How many long polls the server itself has answered."""
    async with httpx.AsyncClient(verify=False, timeout=60) as client:
        text = (await client.get(f"{url}/metrics")).text
    return Scrape(text).value("holds_answered_total", route="long_poll")


async def test_clients_whose_server_dies_for_a_while_come_back_without_a_storm(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In every window they send less than twice what they send when all is well, and all of them are served again.

    A naive client shows why: before anybody is there again, it has asked as often as it may in two minutes.
    """
    caplog.set_level(
        logging.WARNING, "httpx"
    )  # a line for each of thousands of requests is work, too
    forget_hosts()
    tasks = Queue(database_url).enqueue_all(add, [(1, 2)] * CLIENTS_OF_OURS)
    with ScriptedServer(well_behaved) as scripted, ExitStack() as stack:
        served = await asyncio.to_thread(stack.enter_context, server("daphne", database_url))
        port, pid = served
        strict = Crowd(scripted.url, [f"t{number}" for number in range(CLIENTS)], WINDOW_SECONDS)
        ours = Crowd(f"http://127.0.0.1:{port}", tasks, WINDOW_SECONDS_OF_OURS)
        waits = [
            asyncio.create_task(crowd.wait(number))
            for crowd in (strict, ours)
            for number in range(len(crowd.tasks))
        ]
        impatient = asyncio.create_task(naive(ours))
        try:
            for crowd in (strict, ours):
                await crowd.until_answered()
            await asyncio.sleep(WINDOW_SECONDS)
            killed = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(scripted.kill)
            await asyncio.sleep(DEAD_SECONDS)
            await aeventually(impatient.done)
            await asyncio.to_thread(scripted.start)
            again = server("daphne", database_url, port=port)
            await asyncio.to_thread(stack.enter_context, again)
            back = time.monotonic()
            for crowd in (strict, ours):
                await crowd.until_answered(back)
            await asyncio.sleep(WINDOW_SECONDS)
            # Nothing is sent that the hooks do not hear of; an answer may have come to somebody who had left.
            assert await counted_by(ours.url) <= 1.1 * ours.sent_since(killed)
        finally:
            for each in (*waits, impatient):
                each.cancel()
            await asyncio.gather(*waits, impatient, return_exceptions=True)
    in_vain = sum(killed <= at < killed + DEAD_SECONDS for at in impatient.result())
    assert in_vain / DEAD_SECONDS > 2 / HOLD
    assert strict.worst(killed) < 2
    assert ours.worst(killed) < 2

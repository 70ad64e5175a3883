"""Five hundred clients, and a server that is killed for five seconds and comes back: real sockets, real time."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress

import httpx

from asyncpoll.client import AsyncClient, AsyncpollError, PollPolicy
from asyncpoll.client.hosts import forget_hosts
from asyncpoll.client.testing import ScriptedServer, answer, still_running
from tests.support import aeventually

CLIENTS = 500
HOLD = 3.0
DEAD_SECONDS = 5.0
# A second is too short a window on a machine that is busy with other things as well.
WINDOW_SECONDS = 2.0
STEADY = CLIENTS / HOLD * WINDOW_SECONDS


def well_behaved(received):
    """What the real server does with a task that nothing happens to."""
    if received.query["client_known_version"] != "1":
        return answer(version=1)
    granted = received.hold_seconds * (1 - random.random() / 16)
    return still_running(after=granted, backoff_ms=100 if granted else 1200)


async def waiting(url, number, sent, answered):
    """One client of its own, which starts at a moment of its own within the first hold."""
    await asyncio.sleep(number / CLIENTS * HOLD)
    policy = PollPolicy(hold_seconds=HOLD, lifetime_seconds=600)

    def note(attempt):
        sent.append(time.monotonic() - attempt.seconds)
        if attempt.status == 200:
            answered[number] = time.monotonic()

    async with AsyncClient(url, policy=policy, hooks=[note]) as client:
        with suppress(AsyncpollError):
            await client.wait(f"task-{number}")


def windows(sent, since):
    """Requests in each whole window."""
    counted = Counter(int((at - since) // WINDOW_SECONDS) for at in sent if at >= since)
    return [counted[number] for number in range(max(counted))]


async def test_five_hundred_clients_come_back_without_a_storm():
    """In every window of two seconds they send less than twice what they send when all is well, and all come back."""
    forget_hosts()
    sent, answered = [], {}
    with ScriptedServer(well_behaved) as server:
        clients = [
            asyncio.create_task(waiting(server.url, number, sent, answered))
            for number in range(CLIENTS)
        ]
        try:
            await aeventually(lambda: len(answered) == CLIENTS)
            killed = time.monotonic()
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(DEAD_SECONDS)
            await asyncio.to_thread(server.start)
            back = time.monotonic()
            await aeventually(lambda: sum(at > back for at in answered.values()) == CLIENTS)
            # What they send when all are back is looked at as well.
            await asyncio.sleep(WINDOW_SECONDS)
        finally:
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)
    assert max(windows(sent, killed)) < 2 * STEADY, windows(sent, killed)


async def test_a_naive_client_shows_why():
    """Twenty of them, each asking again as soon as a request has failed, for one second."""
    sent = []

    async def naive(url):
        async with httpx.AsyncClient(verify=False) as client:
            while True:
                sent.append(time.monotonic())
                with suppress(httpx.TransportError):
                    await client.get(
                        f"{url}/tasks/t/long_poll?max_hold_seconds=4&client_known_version=1"
                    )

    with ScriptedServer(well_behaved) as server:
        clients = [asyncio.create_task(naive(server.url)) for _ in range(20)]
        await aeventually(lambda: len(server.requests) == 20)
        killed = time.monotonic()
        await asyncio.to_thread(server.kill)
        # What is shown is how many they send in a time.
        await asyncio.sleep(1)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
    assert sum(at >= killed for at in sent) > 4 * 20 / HOLD

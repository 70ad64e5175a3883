"""Held claims and the offers that wake them: one claimant for one offer, and no offer is lost."""

from __future__ import annotations

import asyncio

import pytest

from tasks_app.wakeup.offers import Offers
from tasks_app.wakeup.topic import Wake

LONG = 60.0


@pytest.fixture
def offers():
    return Offers()


async def waiting(*claimants):
    """Their waits, begun in this order."""
    waits = [asyncio.create_task(claimant.woken(LONG)) for claimant in claimants]
    await asyncio.sleep(0)
    return waits


async def settled():
    for _ in range(3):
        await asyncio.sleep(0)


async def test_an_offer_wakes_the_one_that_has_waited_longest_and_nobody_else(offers):
    """No thundering herd."""
    first, second = offers.join("pdf"), offers.join("pdf")
    waits = await waiting(first, second)
    offers.offer("pdf")
    await settled()
    assert [wait.done() for wait in waits] == [True, False]
    offers.offer("pdf")
    assert await asyncio.gather(*waits) == [Wake.OFFER, Wake.OFFER]


async def test_an_offer_is_for_its_queue_only(offers):
    """Two queues have two lanes."""
    waits = await waiting(offers.join("pdf"), offers.join("mail"))
    offers.offer("mail")
    offers.offer("unheard-of")
    await settled()
    assert [wait.done() for wait in waits] == [False, True]
    waits[0].cancel()


async def test_an_offer_made_while_everybody_is_looking_makes_the_next_wait_look_again(offers):
    """Register, look, wait: what comes between is not missed."""
    claimant = offers.join("pdf")
    offers.offer("pdf")
    assert await claimant.woken(LONG) is Wake.OFFER
    [wait] = await waiting(claimant)
    assert not wait.done()
    wait.cancel()


async def test_whoever_looked_in_vain_stays_first_in_line(offers):
    """A look that somebody else was faster at costs nobody their place."""
    first, second = offers.join("pdf"), offers.join("pdf")
    waits = await waiting(first, second)
    offers.offer("pdf")
    assert await waits[0] is Wake.OFFER
    [again] = await waiting(first)
    offers.offer("pdf")
    await settled()
    assert again.done()
    assert not waits[1].done()
    waits[1].cancel()


async def test_an_offer_to_a_client_that_hung_up_goes_to_the_next(offers):
    """It was woken, and cancelled before it could look."""
    first, second = offers.join("pdf"), offers.join("pdf")
    waits = await waiting(first, second)
    offers.offer("pdf")
    waits[0].cancel()
    await settled()
    offers.leave(first)
    assert await waits[1] is Wake.OFFER


async def test_a_client_that_hangs_up_without_an_offer_takes_none_with_it(offers):
    """The line closes behind it."""
    first, second = offers.join("pdf"), offers.join("pdf")
    waits = await waiting(first, second)
    waits[0].cancel()
    await settled()
    offers.leave(first)
    await settled()
    assert not waits[1].done()
    offers.offer("pdf")
    assert await waits[1] is Wake.OFFER


async def test_a_wait_runs_out(offers):
    """And is no longer in line then."""
    first, second = offers.join("pdf"), offers.join("pdf")
    assert await first.woken(0) is Wake.TIMEOUT
    [wait] = await waiting(second)
    offers.offer("pdf")
    assert await wait is Wake.OFFER


async def test_draining_ends_every_wait_and_those_that_would_follow(offers):
    """Also of a claimant that is just looking."""
    idle, busy = offers.join("pdf"), offers.join("mail")
    [wait] = await waiting(idle)
    offers.end_all(Wake.DRAINING)
    assert await wait is Wake.DRAINING
    assert await busy.woken(LONG) is Wake.DRAINING


async def test_the_sweep_offers_every_queue_to_one_claimant(offers):
    """What no hint told of is found by one look per queue, not per claim."""
    claimants = [offers.join(queue) for queue in ("pdf", "pdf", "mail")]
    waits = await waiting(*claimants)
    offers.offer_all()
    await settled()
    assert [wait.done() for wait in waits] == [True, False, True]
    waits[1].cancel()


async def test_nothing_is_left_of_claimants_that_left(offers):
    """Queues come and go."""
    claimants = [offers.join(queue) for queue in ("pdf", "pdf", "mail")]
    assert offers.waiting == 3
    for claimant in claimants:
        offers.leave(claimant)
    offers.offer("pdf")
    assert offers.waiting == 0
    assert offers._lanes == {}

"""The hub's end of the channel layer, and the loops around it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
from channels.exceptions import ChannelFull
from channels.layers import InMemoryChannelLayer

from tasks_app.wakeup.bridge import WORK_CHANNEL, Bridge
from tasks_app.wakeup.hub import Hub
from tasks_app.wakeup.link import Link
from tasks_app.wakeup.message import Message, group_of
from tasks_app.wakeup.topic import Wake
from tests.support import aeventually

GROUP = group_of("test")


async def identify():
    return "test"


class Clock:
    """A clock that tests move."""

    def __init__(self):
        self.now = time.monotonic()

    def monotonic(self):
        return self.now


@pytest.fixture
async def world():
    async def read(ids):
        return {}

    clock = Clock()
    layer = InMemoryChannelLayer(capacity=10)
    hub = Hub(read, clock=clock.monotonic)
    link = Link(layer, hub, identify, clock=clock.monotonic)
    link.clock, link.layer, link.hub = clock, layer, hub
    await link.step()
    yield link
    await link.stop()


async def beat(world, sequence):
    await world.layer.group_send(GROUP, Message(1, sequence, True, "").pack())


async def test_the_hub_hears_what_is_sent_to_the_group(world):
    """One channel, one receive loop."""
    await beat(world, 1)
    await aeventually(lambda: world.hub.trust.active)


async def test_after_silence_the_link_is_rebuilt_on_the_same_instance(world, emitted):
    """A new channel, joined again; the old receive is over, and nothing is left of it."""
    before = world._receiving
    world.clock.now += 3.5
    await world.step()
    assert before.done()
    assert len(emitted.of("hub.rebuilt")) == 1
    assert list(world.layer.groups[GROUP]) == [world._channel]
    await beat(world, 1)
    await aeventually(lambda: world.hub.trust.active)


async def test_a_rebuild_is_not_repeated_before_it_could_help(world, emitted):
    """Every three seconds, not every tick."""
    for _ in range(12):
        world.clock.now += 0.5
        await world.step()
    assert len(emitted.of("hub.rebuilt")) == 2


async def test_a_link_that_hears_is_left_alone(world, emitted):
    """Beats are enough."""
    for sequence in range(1, 20):
        world.clock.now += 0.5
        await beat(world, sequence)
        await aeventually(lambda sequence=sequence: world.hub.trust.sequence == sequence)
        await world.step()
    assert emitted.of("hub.rebuilt") == []


async def test_membership_is_renewed_before_a_layer_forgets_it(world):
    """Layers expire members, living ones too."""
    world.layer.groups.clear()
    world.clock.now += 1
    world.hub.trust.heard_at = world.clock.now + 40
    await world.step()
    assert world.layer.groups == {}
    world.clock.now += 30
    await world.step()
    assert list(world.layer.groups[GROUP]) == [world._channel]


async def test_a_layer_that_was_overrun_leaves_a_gap_that_ends_trust(world, emitted):
    """More messages than its capacity while the hub did not get to run: dropped in silence, noticed by number."""
    await beat(world, 1)
    await aeventually(lambda: world.hub.trust.active)
    for sequence in range(2, 30):
        send_without_yielding(world, Message(1, sequence, False, ""))
    await aeventually(lambda: world.hub.trust.sequence == 11)
    await beat(world, 30)
    await aeventually(lambda: world.hub.trust.sequence == 30)
    assert len(emitted.of("hub.trust_ended")) == 1
    assert world.hub.trust.active


def send_without_yielding(world, message):
    """Send while the hub gets no turn of the event loop."""
    sending = world.layer.send(world._channel, message.pack())
    with suppress(StopIteration, ChannelFull):
        sending.send(None)


async def test_what_is_not_ours_on_the_group_is_passed_over(world):
    """A stranger's message must not kill the receive loop."""
    await world.layer.group_send(GROUP, {"type": "chat.message"})
    await world.layer.group_send(GROUP, {"type": "asyncpoll.wakeup", "epoch": "x"})
    await beat(world, 1)
    await aeventually(lambda: world.hub.trust.active)


class BrokenLayer:
    """A layer whose group_send fails while told to."""

    def __init__(self):
        self.sent, self.broken = [], False

    async def group_send(self, group, message):
        if self.broken:
            raise ConnectionError("away")
        self.sent.append(message)


async def test_a_failed_publication_keeps_its_number():
    """The gap is how the hubs learn of it."""
    layer = BrokenLayer()
    bridge = Bridge(layer)
    bridge._epoch = 1
    bridge.heard("asyncpoll_changed", "a:1")
    await bridge.step()
    layer.broken = True
    bridge.heard("asyncpoll_changed", "b:1")
    with pytest.raises(ConnectionError):
        await bridge.step()
    layer.broken = False
    bridge.heard("asyncpoll_changed", "c:1")
    bridge.heard("asyncpoll_changed", "d:1")
    bridge.beat()
    await bridge.step()
    assert [(m["sequence"], m["hints"], m["beat"]) for m in layer.sent] == [
        (1, "a:1", False),
        (3, "c:1,d:1", True),
    ]


async def test_a_backlog_that_grows_without_end_is_dropped_with_a_gap(emitted):
    """A layer that is stuck must not eat the memory."""
    layer = BrokenLayer()
    bridge = Bridge(layer)
    bridge._epoch = 1
    flood = "x" * 7_999
    for _ in range(250):
        bridge.heard("asyncpoll_changed", flood)
    bridge.heard("asyncpoll_changed", "last:1")
    await bridge.step()
    assert (layer.sent[0]["sequence"], layer.sent[0]["hints"]) == (2, "last:1")
    assert emitted.of("bridge.overrun") == [{"dropped": 250}]


async def test_a_large_backlog_goes_out_in_pieces_and_its_beat_with_the_last():
    """One huge message would freeze every hub; an early beat would certify what has not been said."""
    layer = BrokenLayer()
    bridge = Bridge(layer)
    bridge._epoch = 1
    for _ in range(100):
        bridge.heard("asyncpoll_changed", "x" * 7_999)
    bridge.beat()
    while await bridge.step() == 0:
        pass
    assert max(len(message["hints"]) for message in layer.sent) <= 264_000
    assert sum(message["hints"].count("x") for message in layer.sent) == 799_900
    assert [message["beat"] for message in layer.sent] == [False, False, False, True]


async def test_nothing_is_published_before_there_is_an_epoch():
    """A hub could not tell it from an old bridge's."""
    layer = BrokenLayer()
    bridge = Bridge(layer)
    bridge.heard("asyncpoll_changed", "a:1")
    assert await bridge.step() > 0
    assert layer.sent == []
    await asyncio.sleep(0)


async def test_offers_of_work_reach_whoever_waits_for_that_queue(world):
    """Through the bridge and the layer, once per queue however often it was said; cancels are not for hubs."""
    layer = BrokenLayer()
    bridge = Bridge(layer)
    bridge._epoch = 1
    for payload in ("queue:pdf, large", "queue:pdf, large", "queue:mail", "cancel:1", "nonsense"):
        bridge.heard(WORK_CHANNEL, payload)
    await bridge.step()
    assert layer.sent[0]["queues"] == ["mail", "pdf, large"]
    claimant = world.hub.offers.join("pdf, large")
    waiting = asyncio.create_task(claimant.woken(20.0))
    await asyncio.sleep(0)
    await world.layer.group_send(GROUP, layer.sent[0])
    assert await waiting is Wake.OFFER
    world.hub.offers.leave(claimant)


async def test_room_anywhere_is_an_offer_to_every_queue(world):
    """A limit of running tasks may have held back any of them."""
    layer = BrokenLayer()
    bridge = Bridge(layer)
    bridge._epoch = 1
    bridge.heard(WORK_CHANNEL, "room:")
    await bridge.step()
    claimants = [world.hub.offers.join(queue) for queue in ("mail", "pdf")]
    waits = [asyncio.create_task(claimant.woken(20.0)) for claimant in claimants]
    await asyncio.sleep(0)
    await world.layer.group_send(GROUP, layer.sent[0])
    assert await asyncio.gather(*waits) == [Wake.OFFER, Wake.OFFER]
    for claimant in claimants:
        world.hub.offers.leave(claimant)

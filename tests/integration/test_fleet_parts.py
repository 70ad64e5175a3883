"""The parts of a fleet against a real Redis-protocol server and a real Postgres, inside one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import psutil
import psycopg
import pytest
from channels_redis.core import RedisChannelLayer
from redis.exceptions import RedisError

from tasks_app.store import dsn, lead
from tasks_app.store.pool import Pool, execute
from tasks_app.wakeup import service as services
from tasks_app.wakeup.bridge import Bridge
from tasks_app.wakeup.election import Election, Outlook
from tasks_app.wakeup.hub import Hub
from tasks_app.wakeup.link import Link
from tasks_app.wakeup.message import Message, group_of
from tasks_app.wakeup.redis import RedisLayer
from tasks_app.wakeup.service import WakeupService
from tests.fleet.proxy import Proxy
from tests.fleet.redis_server import RedisServer
from tests.support import aeventually

GROUP = group_of("test")
KEEPALIVE = {socket.TCP_KEEPIDLE: 1, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 1}


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    """Valkey."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def proxy(redis):
    """A link to it that can fail."""
    between = Proxy(redis.port)
    yield between
    between.close()


def hub():
    async def read(ids):
        return {}

    return Hub(read)


async def identify():
    return "test"


def beat(sequence):
    return Message(1, sequence, True, "").pack()


async def heard(layer, link, sequence):
    """Send beats until the hub hears one; gives the next number."""
    number = sequence
    while link._hub.trust.sequence < sequence:
        with contextlib.suppress(Exception):
            await layer.group_send(GROUP, beat(number))
        number += 1
        await asyncio.sleep(0.02)
    return number


async def test_a_redis_connection_that_the_kernel_gives_up_does_not_freeze_the_process(
    redis, proxy, caplog
):
    """Blackholed, then ETIMEDOUT: with redis-py's own connections nothing would ever run again in this event loop."""
    host = {"host": "127.0.0.1", "port": proxy.port, "socket_keepalive": True}
    layer = RedisLayer(hosts=[{**host, "socket_keepalive_options": KEEPALIVE}])
    sender = RedisLayer(hosts=[f"redis://127.0.0.1:{redis.port}"])
    channel = await layer.new_channel()
    await layer.group_add(GROUP, channel)
    proxy.blackhole()
    await aeventually(lambda: "Connection timed out" in caplog.text)
    receiving = asyncio.ensure_future(layer.receive(channel))
    while not receiving.done():
        await sender.group_send(GROUP, beat(1))
        await asyncio.wait({receiving}, timeout=0.1)
    assert receiving.result() == beat(1)
    await asyncio.wait_for(layer.flush(), 5)
    await sender.flush()


async def test_thirty_rebuilds_leave_no_task_no_socket_and_no_client(redis):
    """On the same instance: with another one each time, each would leave one of all three."""
    layer = RedisLayer(hosts=[f"redis://127.0.0.1:{redis.port}"])
    link = Link(layer, hub(), identify)
    number = 1

    async def rebuild():
        nonlocal number
        await link._rebuild()
        number = await heard(layer, link, number)

    def owned():
        sockets = psutil.Process().net_connections("tcp")
        mine = [one for one in sockets if one.raddr and one.raddr.port == redis.port]
        return len(asyncio.all_tasks()), len(mine), redis.clients()

    await rebuild()
    before = owned()
    for _ in range(30):
        await rebuild()
    await aeventually(lambda: owned() == before)
    await link.stop()
    await layer.flush()


async def test_a_server_that_is_away_is_tried_again_without_leaving_anything(tmp_path):
    """However long: each try drops what the one before it began."""
    away = RedisServer(tmp_path)
    layer = RedisLayer(hosts=[f"redis://127.0.0.1:{away.port}"])
    link = Link(layer, hub(), identify)

    async def fails():
        with pytest.raises(RedisError):
            await link._rebuild()
        assert not link.is_joined

    await fails()
    before = len(asyncio.all_tasks())
    for _ in range(30):
        await fails()
    assert len(asyncio.all_tasks()) <= before
    assert len(layer._get_layer().channels) <= 1
    away.start()
    await link._rebuild()
    await heard(layer, link, 1)
    await link.stop()
    await layer.flush()
    away.kill()


async def test_a_receive_task_that_died_of_an_error_does_not_outlive_a_rebuild(redis):
    """channels_redis would trip over it in its flush, and then believe that it still receives."""
    layer = RedisLayer(hosts=[f"redis://127.0.0.1:{redis.port}"])
    link = Link(layer, hub(), identify)
    await link._rebuild()
    number = await heard(layer, link, 1)
    (shard,) = layer._get_layer()._shards
    shard._receive_task.cancel()
    await asyncio.wait({shard._receive_task})
    died = asyncio.get_running_loop().create_future()
    died.set_exception(TimeoutError())
    shard._receive_task = died
    await link._rebuild()
    await heard(layer, link, number)
    await link.stop()
    await layer.flush()


async def test_a_publication_to_a_server_that_stalls_fails_within_its_limits(redis, proxy):
    """And keeps its number; the next one, on a new connection, arrives behind the gap."""
    layer = RedisLayer(hosts=[f"redis://127.0.0.1:{proxy.port}"])
    bridge = Bridge(layer)
    bridge._epoch, bridge._group = 1, GROUP
    bridge.heard("asyncpoll_changed", "a:1")
    await bridge.step()
    proxy.stall()
    bridge.heard("asyncpoll_changed", "b:1")
    with pytest.raises(Exception, match="Timeout"):
        await asyncio.wait_for(bridge.step(), 5)
    receiver = RedisLayer(hosts=[f"redis://127.0.0.1:{redis.port}"])
    channel = await receiver.new_channel()
    await receiver.group_add(GROUP, channel)
    bridge.heard("asyncpoll_changed", "c:1")
    await bridge.step()
    message = await asyncio.wait_for(receiver.receive(channel), 5)
    assert (message["sequence"], message["hints"]) == (3, "c:1")
    await layer.flush()
    await receiver.flush()


async def test_a_layer_that_forgets_its_members_is_joined_again(redis):
    """The core Redis layer keeps memberships in the server, and with the server they are gone."""
    layer = RedisChannelLayer(hosts=[f"redis://127.0.0.1:{redis.port}"])
    link = Link(layer, hub(), identify)
    await link.step()
    number = await heard(layer, link, 1)
    assert redis.ask("FLUSHALL").startswith("+OK")
    link._renewed_at = float("-inf")
    await link.step()
    await heard(layer, link, number)
    await link.stop()
    await layer.close_pools()


@contextlib.asynccontextmanager
async def running(monkeypatch, layer):
    """A wake-up service over `layer`, that is heard."""
    monkeypatch.setattr(services, "private_layer", lambda: layer)
    pool = Pool("test", size=2)
    await pool.open()
    service = WakeupService(pool, may_lead=True)
    service.start()
    await aeventually(lambda: service.hub.trust.active)
    yield service
    await service.stop()
    await pool.close()


async def test_services_that_share_a_layer_have_one_listener(redis, monkeypatch):
    """And a clean end hands the lock over within a second; nobody hears another database's group."""
    url = f"redis://127.0.0.1:{redis.port}"
    async with running(monkeypatch, RedisLayer(hosts=[url])) as first:
        assert first.state.bridge == "leader"
        async with running(monkeypatch, RedisLayer(hosts=[url])) as second:
            assert (second.state.bridge, second.state.trusted, second.state.layer) == (
                "standby",
                True,
                True,
            )
            stranger = Message(10**12, 1, True, "").pack()
            await first.bridge._layer.group_send(group_of("another database"), stranger)
            epoch = second.hub.trust.epoch
            await first.stop()
            await aeventually(lambda: second.state.bridge == "leader")
            await aeventually(lambda: epoch < second.hub.trust.epoch < 10**12)


@pytest.mark.django_db(transaction=True)
async def test_a_bridge_whose_session_is_busy_but_silent_is_deposed(emitted):
    """Frozen while the server waits for it to take in what it heard: to the server that is not an idle session."""
    busy = await psycopg.AsyncConnection.connect(**dsn.parameters("frozen"), autocommit=True)
    assert (await execute(busy, lead()))[0]
    working = asyncio.ensure_future(busy.execute("SELECT pg_sleep(60)"))
    loop = asyncio.get_running_loop()
    never = float("-inf")
    # A clock that goes ten times as fast as ours.
    election = Election(
        Outlook(lambda: never, lambda: never, lambda: True), lambda: loop.time() * 10
    )
    async with await psycopg.AsyncConnection.connect(
        **dsn.parameters("standby"), autocommit=True
    ) as standby:
        await asyncio.wait_for(election.admit(standby, lambda: None), 20)
        with pytest.raises(psycopg.OperationalError):
            await working
        assert len(emitted.of("bridge.deposed")) == 1
        await asyncio.to_thread(busy.pgconn.finish)

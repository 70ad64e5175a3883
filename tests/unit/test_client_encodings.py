"""Encoded bodies, none of which becomes larger than what may be taken."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import httpx
import pytest

from asyncpoll.client import (
    PollPolicy,
    ResponseTooLarge,
    Unreachable,
    await_for_terminal,
    wait_for_terminal,
)
from asyncpoll.client.encodings import Decoder, Undecodable
from asyncpoll.client.testing import Act, ScriptedServer
from tests.sdk import KINDS, Caller

ZEROS = bytes(20_000_000)
ONCE = PollPolicy(error_budget=0, max_body_bytes=100_000)


@pytest.fixture(params=KINDS)
def kind(request):
    """Either driver."""
    return request.param


def encoded(body, encoding):
    """An answer whose body is encoded already; of `gzip` the scripted server would do it once more."""
    return Act(body=body, headers={"Content-Encoding": encoding})


async def most_used(kind, act, error):
    """The bytes that asking once took, which fails with `error`."""
    with ScriptedServer([act]) as server:
        async with Caller(kind, server.url, policy=ONCE) as client:
            tracemalloc.start()
            try:
                with pytest.raises(error) as raised:
                    await client.get("t1")
                return tracemalloc.get_traced_memory()[1], str(raised.value)
            finally:
                tracemalloc.stop()


@pytest.mark.parametrize("body", [gzip.compress(ZEROS), zlib.compress(ZEROS)])
async def test_of_a_bomb_only_what_may_be_taken_is_unpacked(kind, body):
    """Twenty kilobytes that stand for twenty megabytes."""
    used, said = await most_used(kind, encoded(body, "x-gzip"), ResponseTooLarge)
    assert used < 5_000_000 and "max_body_bytes" in said


@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,deflate", "br", "zstd"])
async def test_an_encoding_that_nobody_asked_for_is_refused(kind, encoding):
    """Encoded twice, a thousand bytes stand for a billion."""
    bomb = gzip.compress(gzip.compress(ZEROS))
    used, said = await most_used(kind, encoded(bomb, encoding), Unreachable)
    assert used < 5_000_000 and "must be one of gzip, deflate" in said


async def test_of_an_answer_that_leads_elsewhere_no_more_is_read_than_of_any(kind):
    """Where redirects are followed, as at a foreign endpoint."""
    away = Act(302, body=ZEROS * 2, headers={"Location": "/again"})
    wait = wait_for_terminal if kind == "sync" else await_for_terminal
    with ScriptedServer([away]) as server, pytest.raises(ResponseTooLarge):
        if kind == "sync":
            with httpx.Client(follow_redirects=True) as own:
                await asyncio.to_thread(wait, own, server.url)
        else:
            async with httpx.AsyncClient(follow_redirects=True) as own:
                await wait(own, server.url)
    assert len(server.requests) == 1


async def test_every_encoding_that_is_asked_for_is_understood(kind):
    """Also deflate as some servers send it, without its header."""
    document = b'{"task_id": "t1", "status": "SUCCESS", "version": 1, "result": "x"}'
    bare = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    bodies = {
        "x-gzip": gzip.compress(document),
        "deflate": zlib.compress(document),
        "Deflate": bare.compress(document) + bare.flush(),
        "identity": document,
    }
    for encoding, body in bodies.items():
        with ScriptedServer([encoded(body, encoding)]) as server:
            async with Caller(kind, server.url, policy=ONCE) as client:
                assert (await client.get("t1")).result == "x"
        assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"


async def test_a_body_that_a_clients_own_hook_has_read_is_taken_from_there(kind):
    """Decoded already; a mocked transport is such a case too."""
    document = b'{"task_id": "t1", "status": "SUCCESS", "version": 1, "result": "x"}'
    headers = {"Content-Encoding": "gzip"}
    mock = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=headers, content=gzip.compress(document))
    )
    own = (httpx.Client if kind == "sync" else httpx.AsyncClient)(transport=mock)
    async with Caller(kind, "http://example.org", http=own) as client:
        assert (await client.get("t1")).result == "x"


def test_what_is_broken_half_way_is_said_so():
    """And not taken for deflate without a header."""
    decoder = Decoder("gzip")
    body = gzip.compress(b"x" * 100)
    decoder.decode(body[:-8], 100)
    with pytest.raises(Undecodable, match="broken"):
        decoder.decode(bytes(8), 100)

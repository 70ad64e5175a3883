"""Bodies are read to their limit and no further."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.core.exceptions import RequestAborted

from tasks_app.serving.body import BodyTooLarge, read_body


class _Client:
    """Sends chunks, and counts how many were asked for."""

    def __init__(self, *chunks: bytes, leaves: bool = False) -> None:
        self.asked = 0
        self._messages = [
            {"type": "http.request", "body": chunk, "more_body": leaves or number < len(chunks)}
            for number, chunk in enumerate(chunks, 1)
        ]
        self._messages.append({"type": "http.disconnect"})

    async def receive(self) -> dict[str, Any]:
        self.asked += 1
        return self._messages.pop(0)


def _scope(**headers: str) -> dict[str, Any]:
    return {"headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]}


async def test_a_body_of_exactly_the_limit_is_read() -> None:
    """In however many pieces it comes."""
    body = await read_body(_scope(), _Client(b"abc", b"", b"de").receive, 5)
    assert body.read() == b"abcde"


async def test_one_byte_more_is_refused_and_read_to_its_end() -> None:
    """The rest is thrown away, so that the client can finish sending and read the answer."""
    client = _Client(b"abc", b"def", b"g")
    with pytest.raises(BodyTooLarge):
        await read_body(_scope(), client.receive, 5)
    assert client.asked == 3


@pytest.mark.parametrize("length", ["6", "9" * 5_000])
async def test_a_declared_length_over_the_limit_is_refused_up_front(length: str) -> None:
    """Nothing of it is kept."""
    client = _Client(b"abc", b"d")
    with pytest.raises(BodyTooLarge):
        await read_body(_scope(content_length=length), client.receive, 5)
    assert client.asked == 2


async def test_a_client_that_asks_before_it_sends_is_not_told_to_go_on() -> None:
    """Receiving anything would send it "100 Continue"."""
    client = _Client(b"abc")
    with pytest.raises(BodyTooLarge):
        await read_body(_scope(content_length="6", expect="100-Continue"), client.receive, 5)
    assert client.asked == 0


async def test_a_client_that_leaves_half_way_aborts() -> None:
    """Its request never happened."""
    with pytest.raises(RequestAborted):
        await read_body(_scope(), _Client(b"abc", leaves=True).receive, 5)
    with pytest.raises(RequestAborted):
        await read_body(_scope(content_length="9"), _Client(b"abc", leaves=True).receive, 5)


async def test_a_body_that_does_not_arrive_in_time_is_given_up() -> None:
    """A client that stops half-way must not keep a server from stopping."""

    async def nothing_comes() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(TimeoutError):
        await read_body(_scope(), nothing_comes, 5, within=0.01)

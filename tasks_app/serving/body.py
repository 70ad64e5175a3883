"""Reading a request's body, up to a limit and never beyond it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from io import BytesIO
from typing import Any

from django.core.exceptions import RequestAborted

ARRIVAL_SECONDS = 10.0
"""How long a request may take to arrive."""

# A client that is still sending when its connection closes sees a reset instead of the answer. So a little more than
# the limit is read and thrown away first.
_DISCARD_SECONDS = 2.0
_DISCARD_BYTES = 32 * 1024 * 1024


class BodyTooLarge(Exception):
    """The body is larger than the limit; it was not kept."""


async def read_body(
    scope: dict[str, Any], receive: Any, limit: int, within: float = ARRIVAL_SECONDS
) -> BytesIO:
    """The whole body.

    Raises BodyTooLarge beyond `limit` bytes, TimeoutError if it takes longer than `within` seconds, and RequestAborted
    if the client leaves.
    """
    async with asyncio.timeout(within):
        return await _read(scope, receive, limit)


async def _read(scope: dict[str, Any], receive: Any, limit: int) -> BytesIO:
    if _declared(scope, b"content-length") > limit:
        if not _expects_continue(scope):
            await _discard(receive)
        raise BodyTooLarge
    body = BytesIO()
    more = True
    while more:
        chunk, more = await _next_chunk(receive)
        if body.tell() + len(chunk) > limit:
            if more:
                await _discard(receive)
            raise BodyTooLarge
        body.write(chunk)
    body.seek(0)
    return body


async def _next_chunk(receive: Any) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise RequestAborted
    return message.get("body", b""), message.get("more_body", False)


async def _discard(receive: Any) -> None:
    left, more = _DISCARD_BYTES, True
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while more and left > 0:
                chunk, more = await _next_chunk(receive)
                left -= len(chunk)


def _declared(scope: dict[str, Any], name: bytes) -> int:
    value = _header(scope, name)
    # More digits than any body has bytes; Python refuses to read thousands of them.
    return int(value[:19]) if value.isdigit() else 0


def _expects_continue(scope: dict[str, Any]) -> bool:
    """Such a client waits to be asked before it sends; reading on would ask it."""
    return _header(scope, b"expect").lower() == b"100-continue"


def _header(scope: dict[str, Any], name: bytes) -> bytes:
    return next((value for key, value in scope.get("headers", ()) if key == name), b"")

"""An HTTP client that tells an end of file from a reset, and can stop half-way through a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support import PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def closes(self) -> bool:
        """True if it says that the connection ends with it."""
        return self.headers.get("connection") == "close"


class Connection:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(
        cls, port: int, host: str = "127.0.0.1", source: str | None = None
    ) -> Connection:
        """Connect, from the address `source` if it matters."""
        local = (source, 0) if source else None
        return cls(*await asyncio.open_connection(host, port, local_addr=local))

    async def send(self, data: bytes) -> None:
        """Send raw bytes."""
        self._writer.write(data)
        await self._writer.drain()

    async def ask(self, path: str, method: str = "GET", body: bytes = b"", extra: str = "") -> None:
        """Send a whole request."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}{extra}\r\n"
        await self.send(head.encode() + body)

    async def answer(self) -> Answer:
        """Read one answer. Raises ConnectionResetError or IncompleteReadError when there is none."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._read_answer()

    async def _read_answer(self) -> Answer:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")[:-2]
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return Answer(int(first.split()[1]), headers, body)

    async def get(self, path: str) -> Answer:
        """Ask and read."""
        await self.ask(path)
        return await self.answer()

    async def until(self, mark: bytes) -> bytes:
        """Read up to `mark`."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._reader.readuntil(mark)

    async def ending(self) -> str:
        """How the server ends the connection: "eof" or "reset"."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                rest = await self._reader.read()
        except ConnectionResetError:
            return "reset"
        return "eof" if not rest else f"unexpected {rest!r}"

    def hang_up(self) -> None:
        """Leave at once."""
        self._writer.close()


@asynccontextmanager
async def connections(port: int, count: int) -> AsyncIterator[list[Connection]]:
    """`count` connections, closed at the end."""
    opened = [await Connection.open(port) for _ in range(count)]
    try:
        yield opened
    finally:
        for connection in opened:
            connection.hang_up()


async def hammer(port: int) -> list[str]:
    """Connect and ask again and again until the port refuses; how each try ended."""
    endings: list[str] = []
    while "refused" not in endings:
        try:
            connection = await Connection.open(port)
        except ConnectionRefusedError:
            endings.append("refused")
            continue
        except ConnectionResetError:
            endings.append("reset while connecting")
            continue
        try:
            answer = await connection.get("/plain")
            endings.append("answered" if answer.status == 200 else f"status {answer.status}")
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            endings.append(repr(error))
        connection.hang_up()
        await asyncio.sleep(0.02)  # a client's pace
    return endings

"""A server that plays a script, on a real socket, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, TypeAlias, TypeVar

from asyncpoll.client.testing.acts import Act, Received

Script: TypeAlias = Iterable[Act] | Callable[[Received], Act]
T = TypeVar("T")

# SO_LINGER on, with no time to linger: close() sends RST.
_NO_LINGER: Final = struct.pack("ii", 1, 0)
_BACKLOG: Final = 2048
# So many bytes does half an answer lack.
_MISSING: Final = 10


class ScriptedServer:
    """Answers each request with the next act of a script, and the last one for ever; or as a function of the request says.

    `url` is where it listens, `requests` what came so far, `connections` how many connections were made.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[Received] = []
        self.connections = 0
        self.play(script)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    def play(self, script: Script) -> None:
        """Go on with another script."""
        self._acts = script if callable(script) else _one_after_the_other(list(script))

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        self._run(self._end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self) -> None:
        """Listen, again after `kill` and on the same port."""
        self._run(self._listen())

    def kill(self) -> None:
        """Stop listening and reset every connection, as a process that is killed."""
        self._run(self._kill())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, backlog=_BACKLOG, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _kill(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            _reset(writer)

    async def _end_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or we have
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        """One request and its act. True if the connection goes on."""
        received = await _read(reader, number)
        self.requests.append(received)
        act = self._acts(received)
        if await _left_within(reader, act.after):
            return False
        return await _play(act, received, writer)


def _one_after_the_other(acts: list[Act]) -> Callable[[Received], Act]:
    if not acts:
        raise ValueError("The script is empty; give it one act or more.")
    rest = iter(acts)
    return lambda received: next(rest, acts[-1])


async def _read(reader: asyncio.StreamReader, connection: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")[:-2]
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(method, target, headers, body, time.monotonic(), connection)


async def _left_within(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Wait so long; true if the client went away meanwhile. It sends nothing while it waits for an answer."""
    if seconds <= 0:
        return False
    with suppress(TimeoutError):
        async with asyncio.timeout(None if seconds == float("inf") else seconds):
            await reader.read(1)
            return True
    return False


async def _play(act: Act, received: Received, writer: asyncio.StreamWriter) -> bool:
    if act.ending == "cut":
        return False
    if act.ending == "reset":
        _reset(writer)
        return False
    whole = act.bytes_for(received)
    await _send(writer, whole[:-_MISSING] if act.ending == "half" else whole, act.pause)
    return act.ending == "whole"


async def _send(writer: asyncio.StreamWriter, data: bytes, pause: float) -> None:
    for part in (data,) if not pause else (bytes((byte,)) for byte in data):
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(pause)


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()

"""A TCP proxy between a process and a server, whose link can be stalled, blackholed or cut."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from tests.support import free_port

_SO_ATTACH_FILTER = 26
_SO_DETACH_FILTER = 27


def drop_arrivals(connection: socket.socket) -> None:
    """Have the kernel drop whatever arrives, before it is acknowledged: for the sender a blackhole."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0 bytes
    packed = struct.pack("HL", 1, ctypes.addressof(program))
    connection.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, packed)


class Proxy:
    """Listens on `port` in a thread of its own, and forwards to `target`: a TCP port or a Unix socket's path.

    With `cuts_at`, it cuts each connection that is so many seconds old. `accepted` is how many there were.
    """

    def __init__(self, target: int | str, cuts_at: float | None = None) -> None:
        self.port = free_port()
        self.accepted = 0
        self._target = target
        self._cuts_at = cuts_at
        self._pipes: set[_Pipe] = set()
        self._state = "open"
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", self.port))

    def stall(self) -> None:
        """From now on nothing is forwarded on the present connections; their bytes are still acknowledged."""
        self._state = "silent"
        self._run(self._each("stall"))

    def blackhole(self) -> None:
        """From now on the present connections lose every packet. New ones work."""
        self._state = "silent"
        self._run(self._each("blackhole"))

    def cut(self) -> None:
        """The present connections are blackholed, and new ones get no answer."""
        self.blackhole()
        self._state = "cut"

    def mend(self) -> None:
        """New connections work; the present ones are closed, unless nothing was wrong."""
        if self._state != "open":
            self._state = "open"
            self._run(self._each("close"))

    def close(self) -> None:
        """End everything."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _end(self) -> None:
        self._server.close()
        await self._each("close")
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _each(self, what: str) -> None:
        for pipe in tuple(self._pipes):
            getattr(pipe, what)()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pipe = _Pipe(writer)
        self._pipes.add(pipe)
        self.accepted += 1
        try:
            if self._state == "cut":
                await pipe.over.wait()
            else:
                async with asyncio.timeout(self._cuts_at):
                    await pipe.forward(reader, self._target)
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            pass  # by `_end`; the server of Python 3.11 would write it out
        finally:
            pipe.close()
            self._pipes.discard(pipe)


class _Pipe:
    """One connection through the proxy."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.over = asyncio.Event()
        self._writers = [writer]
        self._flows = asyncio.Event()
        self._flows.set()

    async def forward(self, reader: asyncio.StreamReader, target: int | str) -> None:
        """Forward both ways until either side ends, or `close`."""
        with suppress(OSError):
            if isinstance(target, int):
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
            else:
                far_reader, far_writer = await asyncio.open_unix_connection(target)
            self._writers.append(far_writer)
            ways = [
                asyncio.create_task(self._copy(reader, far_writer)),
                asyncio.create_task(self._copy(far_reader, self._writers[0])),
                asyncio.create_task(self.over.wait()),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if not self._flows.is_set():
                await self.over.wait()
            for way in ways:
                way.cancel()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()

    def stall(self) -> None:
        self._flows.clear()

    def blackhole(self) -> None:
        self._flows.clear()
        for writer in self._writers:
            connection = writer.get_extra_info("socket")
            if connection.family == socket.AF_INET:
                drop_arrivals(connection)

    def close(self) -> None:
        self.over.set()
        for writer in self._writers:
            # Not close(), which would wait for a peer that hears nothing.
            writer.transport.abort()

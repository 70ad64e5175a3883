"""Processes that share a port answer a scrape together.

The system chooses who of them gets it, and that one asks the others, over a socket that each has in a directory of
theirs: else gauges would be those of another process each time, and a sum over them wrong by their number.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from tasks_app.observers.metrics import WAITS
from tasks_app.scrapes.own import own_figures

# One that takes longer is stuck, and what the others say is worth having.
_PATIENCE_SECONDS = 0.5
# The path of a socket has 107 bytes at most, and the name of a process needs some of them.
_LONGEST_DIRECTORY = 90


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the others said, and how many of them said nothing."""

    texts: Sequence[str] = ()
    silent: int = 0


class Siblings:
    """This process among those whose sockets are in `directory`. `figures` is what it answers."""

    def __init__(
        self, directory: Path, figures: Callable[[], Awaitable[str]] = own_figures
    ) -> None:
        self._directory = directory
        self._figures = figures
        self._own = directory / str(os.getpid())
        self._parent = os.getppid()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Answer the others from now on."""
        self._server = await asyncio.start_unix_server(self._answer, self._own)

    async def stop(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
        self._own.unlink(missing_ok=True)
        if os.getppid() != self._parent:
            # Nobody else is left to clear up, but for siblings that still are inside.
            with suppress(OSError):
                self._directory.rmdir()

    async def gather(self) -> Gathered:
        """Ask the others, all at once."""
        others = [path for path in self._directory.iterdir() if path != self._own]
        found = await asyncio.gather(*map(_ask, others))
        texts = [text for text in found if text]
        return Gathered(texts, silent=sum(text is None for text in found))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            ahead_seconds = orjson.loads(await reader.readuntil())
            if ahead_seconds is not None:
                # The same machine: what one of us has measured of its clock is so for all.
                WAITS.ahead_seconds = ahead_seconds
            writer.write((await self._figures()).encode())
            await writer.drain()
        writer.close()


async def _ask(path: Path) -> str | None:
    """What the process says; None: nothing in time; empty: there is no such process any more."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(orjson.dumps(WAITS.ahead_seconds) + b"\n")
                return (await reader.read(-1)).decode() or None
            finally:
                writer.close()
    except (ConnectionRefusedError, FileNotFoundError):
        _forget(path)
        return ""
    except OSError:
        return None


def _forget(path: Path) -> None:
    """It died without a farewell."""
    path.unlink(missing_ok=True)


_siblings: list[Siblings] = []


async def start_siblings(directory: Path) -> None:
    """Share scrapes with whoever else has started in `directory`."""
    _siblings.append(Siblings(directory))
    await _siblings[-1].start()


async def stop_siblings() -> None:
    """Answer for nobody but this process, and to nobody else."""
    while _siblings:
        await _siblings.pop().stop()


async def gathered() -> Gathered:
    """What the others say; nothing where this process has no siblings."""
    return await _siblings[-1].gather() if _siblings else Gathered()


@contextmanager
def meeting_place() -> Iterator[Path]:
    """A directory for siblings that nobody else may enter, for as long as they have a parent."""
    usual = tempfile.gettempdir()
    root = usual if len(os.fsencode(usual)) < _LONGEST_DIRECTORY - 25 else "/tmp"  # noqa: S108
    with tempfile.TemporaryDirectory(
        prefix="asyncpoll-", dir=root, ignore_cleanup_errors=True
    ) as path:
        yield Path(path)

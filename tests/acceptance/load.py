"""Clients that come again and again, and remember how each of their requests ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.holdsite.client import Answer, Connection

Request = tuple[str, str, bytes]
PLAIN: Request = ("/plain", "GET", b"")
# A client's own pace: without one, twenty of them would be all that the machine does.
PACE_SECONDS = 0.04


@dataclass(slots=True)
class Endings:
    """How requests ended: a status, "refused" before it was connected, or what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)

    @property
    def kinds(self) -> set[str]:
        """Each way in which a request ended."""
        return set(self.counts)


class Client:
    """Asks `request` until told to stop: on a connection each time, or on one for as long as the server keeps it."""

    def __init__(
        self, port: int, request: Request, endings: Endings, *, keeps: bool, extra: str = ""
    ) -> None:
        self._port = port
        self._request = request
        self._endings = endings
        self._keeps = keeps
        self._extra = f"Content-Type: application/json\r\n{extra}"
        self._connection: Connection | None = None

    async def ask(self) -> bool:
        """Ask once; False if nobody listens."""
        try:
            connection = self._connection or await Connection.open(self._port)
        except ConnectionRefusedError:
            self._endings.counts["refused"] += 1
            return False
        except OSError as error:
            self._endings.counts[f"{error!r} while connecting"] += 1
            return True
        self._connection = connection
        answer = await self._answer(connection)
        if answer is None or answer.closes or not self._keeps:
            connection.hang_up()
            self._connection = None
        return True

    async def _answer(self, connection: Connection) -> Answer | None:
        path, method, body = self._request
        try:
            await connection.ask(path, method, body, self._extra)
            answer = await connection.answer()
        except (OSError, asyncio.IncompleteReadError) as error:
            self._endings.counts[repr(error)] += 1
            return None
        self._endings.counts[str(answer.status)] += 1
        self._endings.answers.append(answer)
        return answer


@asynccontextmanager
async def clients(
    port: int,
    count: int,
    request: Request = PLAIN,
    *,
    keeps: bool = False,
    extra: str = "",
    pause_seconds: float = PACE_SECONDS,
) -> AsyncIterator[Endings]:
    """`count` clients that ask from now until the block ends; each then finishes what it has begun. `extra` are more
    lines of each request's head."""
    endings, over = Endings(), asyncio.Event()

    async def come_again(client: Client) -> None:
        while not over.is_set():
            await client.ask()
            await asyncio.sleep(pause_seconds)

    works = [
        asyncio.create_task(come_again(Client(port, request, endings, keeps=keeps, extra=extra)))
        for _ in range(count)
    ]
    try:
        yield endings
    finally:
        over.set()
        await asyncio.gather(*works)


async def until_refused(port: int, request: Request, endings: Endings) -> None:
    """Ask on a new connection each time until nobody listens any more."""
    client = Client(port, request, endings, keeps=False)
    while await client.ask():
        await asyncio.sleep(PACE_SECONDS)


async def at_once(count: int, make: Callable[[], Awaitable[Connection]]) -> list[Connection]:
    """`count` connections, some at a time."""
    opened: list[Connection] = []
    while len(opened) < count:
        opened += await asyncio.gather(*(make() for _ in range(min(100, count - len(opened)))))
    return opened

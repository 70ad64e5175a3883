"""The web processes of a fleet, each behind proxies of its own to Redis and to its listening connection."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.acceptance.processes import ask
from tests.databases import ROOT
from tests.fleet.proxy import Proxy
from tests.fleet.redis_server import RedisServer
from tests.postgres import Postgres
from tests.scraping import Scrape
from tests.support import aeventually, free_port

AWAY = (OSError, asyncio.IncompleteReadError, TimeoutError)
"""What a client of a process meets that is killed, frozen or not there yet."""
# Three processes that start on a busy machine take long; this only bounds how long a broken fleet is waited for.
WELL_SECONDS = 60.0


def gate(directory: Path) -> Path:
    """The file that closes a layer which can be overrun."""
    return directory / "closed"


class Web:
    """One `manage.py serve`."""

    def __init__(
        self,
        number: int,
        postgres: Postgres,
        redis: RedisServer,
        logs: Path,
        settings: str = "tests.settings",
    ) -> None:
        self.number = number
        self.port = free_port()
        self.redis = Proxy(redis.port)
        self.listening = Proxy(postgres.socket)
        self._log = logs / f"web{number}.log"
        self._environment = {
            **os.environ,
            "DATABASE_URL": postgres.url,
            "LISTEN_DATABASE_URL": postgres.url_through(self.listening.port),
            "CHANNEL_REDIS_URL": f"redis://127.0.0.1:{self.redis.port}",
            "DJANGO_SETTINGS_MODULE": settings,
            "LAYER_GATE": str(gate(logs)),
        }
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        """Start it; `ready` tells when it is."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--port", str(self.port)],
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    async def readyz(self) -> dict[str, Any]:
        """What it says of itself; nothing when it does not answer."""
        try:
            async with asyncio.timeout(2):
                answer = await ask(self.port, "/readyz")
        except AWAY:
            return {}
        return {**answer.json, "code": answer.status}

    async def scrape(self) -> Scrape:
        """Its metrics; none when it does not answer."""
        try:
            async with asyncio.timeout(5):
                answer = await ask(self.port, "/metrics")
        except AWAY:
            return Scrape("")
        return Scrape(answer.body.decode() if answer.status == 200 else "")

    async def says(self, **facts: Any) -> bool:
        """Do both say so, `readyz` and metrics?"""
        said, scrape = await self.readyz(), await self.scrape()
        return all(said.get(name) == value for name, value in facts.items()) and all(
            metrics_say(scrape, name, value) for name, value in facts.items()
        )

    async def shows(self, **facts: Any) -> None:
        """Wait until both say so, `readyz` and metrics."""
        await aeventually(lambda: self.says(**facts))

    def logged(self) -> str:
        """What it has logged since it was first started."""
        return self._log.read_text()

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and reap."""
        self.process.kill()
        self.process.wait()

    def mend(self) -> None:
        """Undo whatever a test has done to it."""
        self.signal(signal.SIGCONT)
        self.redis.mend()
        self.listening.mend()

    def close(self) -> None:
        """End it and its proxies."""
        if self.process.poll() is None:
            self.kill()
        self.redis.close()
        self.listening.close()


def metrics_say(scrape: Scrape, name: str, value: Any) -> bool:
    """Do metrics agree with what `readyz` says of its part `name`?"""
    if name in ("link", "layer"):
        return scrape.has(f"{name}_up") and scrape.value(f"{name}_up") == (value == "up")
    if name == "bridge":
        return scrape.value("bridge", part=value) == 1
    assert name == "code", f"metrics say nothing of {name}"
    return scrape.has("link_up")


class Webs(list[Web]):
    """All of them."""

    async def show(self, **facts: Any) -> None:
        """Wait until each of them has said so, in `readyz` and in its metrics."""
        await asyncio.gather(*(web.shows(**facts) for web in self))

    @asynccontextmanager
    async def losing_the_link(self) -> AsyncIterator[None]:
        """At the end of the block, wait until each has counted in metrics that it lost the link: also if only for an
        instant, which no look at `readyz` can be sure to meet."""
        before = await self._losses()
        yield

        async def each_has_counted() -> bool:
            now = await self._losses()
            return all(more > count for more, count in zip(now, before, strict=True))

        await aeventually(each_has_counted)

    async def _losses(self) -> list[float]:
        return [(await web.scrape()).value("link_losses_total") for web in self]

    async def leader(self) -> Web:
        """The one that is the bridge, once exactly one is, and everybody hears it; any, if each is its own."""
        await aeventually(self.are_well, WELL_SECONDS)
        leading = [web for web in self if await web.says(bridge="leader")]
        return (leading or self)[0]

    @asynccontextmanager
    async def log(self, words: str) -> AsyncIterator[None]:
        """At the end of the block, wait until one of them has logged these words since its beginning."""
        before = [web.logged().count(words) for web in self]
        yield
        await aeventually(lambda: [web.logged().count(words) for web in self] != before)

    def count_logged(self, words: str) -> int:
        """How often they have logged these words."""
        return sum(web.logged().count(words) for web in self)

    async def are_well(self) -> bool:
        """Exactly one leads or each is its own bridge, everybody hears it, and the layer works for all."""
        said = await asyncio.gather(*(web.readyz() for web in self))
        parts = sorted(str(one.get("bridge")) for one in said)
        fits = (["leader", *["standby"] * (len(self) - 1)], ["own"] * len(self))
        return parts in fits and all(
            (one["link"], one["layer"], one["code"]) == ("up", "up", 200) for one in said
        )

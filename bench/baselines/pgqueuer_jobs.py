"""PgQueuer: QueueManagers on asyncpg and uvloop, as in its own benchmark.

python -m bench.baselines.pgqueuer_jobs {install | produce | work BATCH MANAGERS}
"""

from __future__ import annotations

import asyncio
import os

import asyncpg
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench import tally
from bench.baselines.running import run
from bench.producing import aserve

_ENTRYPOINT = "nothing"


async def _queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(os.environ["DATABASE_URL"])))


async def install() -> None:
    """Create its tables."""
    await (await _queries()).install()


async def produce() -> None:
    """Serve orders."""
    queries = await _queries()

    async def enqueue(count: int) -> None:
        if count == 1:
            await queries.enqueue(_ENTRYPOINT, None)
        else:
            await queries.enqueue([_ENTRYPOINT] * count, [None] * count, [0] * count)

    await aserve(enqueue)


async def work(batch: int, managers: int) -> None:
    """Be a worker, with several queue managers on connections of their own."""
    await asyncio.gather(*(_manage(batch) for _ in range(managers)))


async def _manage(batch: int) -> None:
    manager = QueueManager(await _queries())

    @manager.entrypoint(_ENTRYPOINT)
    async def nothing(job: Job) -> None:
        tally.count()

    await manager.run(batch_size=batch)


if __name__ == "__main__":
    run(install=install, produce=produce, work=work)

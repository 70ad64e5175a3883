"""Procrastinate: an App on its psycopg connector, whose worker runs so many jobs at once.

python -m bench.baselines.procrastinate_jobs {install | produce | work BATCH}
"""

from __future__ import annotations

import os

from procrastinate import App, PsycopgConnector

from bench import tally
from bench.baselines.running import run
from bench.producing import aserve

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))


@app.task
async def nothing() -> None:
    """Counts itself."""
    tally.count()


async def install() -> None:
    """Create its tables."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def produce() -> None:
    """Serve orders."""

    async def enqueue(count: int) -> None:
        if count == 1:
            await nothing.defer_async()
        else:
            await nothing.batch_defer_async(*({} for _ in range(count)))

    async with app.open_async():
        await aserve(enqueue)


async def work(batch: int) -> None:
    """Be a worker."""
    async with app.open_async():
        await app.run_worker_async(concurrency=batch)


if __name__ == "__main__":
    run(install=install, produce=produce, work=work)

"""Enqueues tasks: one through the public interface, several in one statement of the store, which that uses as well."""

from __future__ import annotations

import asyncio

import django

from bench.producing import aserve


def main() -> None:
    """Serve orders."""
    django.setup()
    asyncio.run(aserve(_enqueue))


async def _enqueue(count: int) -> None:
    from bench.worker.site.work import nothing
    from tasks_app.store import enqueue
    from tasks_app.store.announcer import announcer
    from tasks_app.store.pool import loop_pool

    if count == 1:
        await nothing.aenqueue()
        return
    await (await loop_pool()).run(enqueue([nothing.prepare((), {}) for _ in range(count)]))
    announcer.announce(nothing.queue)


if __name__ == "__main__":
    main()

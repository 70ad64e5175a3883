"""The figures of this web process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tasks_app.hold.admission import admission
from tasks_app.observers.exposition import State, exposition
from tasks_app.observers.metrics import install
from tasks_app.observers.states import LinkUse, LoopUse, PoolUse, ServingUse
from tasks_app.wakeup.service import current_service


async def own_figures(more: Sequence[State] = ()) -> str:
    """The text of a scrape of this process alone, with `more` states than its own."""
    install()  # where no server of ours has done so, counting begins now
    service = await current_service()
    loop = LoopUse(admission.lag_seconds, tasks=len(asyncio.all_tasks()))
    states: list[State] = [
        _serving_use(),
        loop,
        LinkUse(service.state),
        PoolUse(service.pool.stats),
        *more,
    ]
    return exposition(states).decode()


def _serving_use() -> ServingUse:
    """The requests in this process."""
    return ServingUse(
        held=dict(admission.held_by),
        inside=admission.inside,
        most_held=admission.most_held,
        draining=admission.draining,
    )

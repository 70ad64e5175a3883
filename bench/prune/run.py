"""One run: others use the database all the while, and every other second somebody prunes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from bench.child import Child
from bench.database import Databases
from bench.errors import BenchError
from bench.project import environment, manage
from bench.prune.figures import Figures, spread
from bench.prune.others import TASK, Others
from bench.prune.pruner import Pruner
from bench.prune.turns import Turns
from bench.store import StoreConnection
from bench.worker.filling import MONTH_SECONDS, fill
from tasks_app.insights.sketch import GAMMA, SHORTEST_MS
from tasks_app.store import roll_up
from tasks_app.upkeep.rollups import LOOKS, MOST_HOURS

# Longer than a run, so that nothing is deleted of what is measured.
_KEPT_SECONDS = 3_600
_TURN_SECONDS = 1.0
_WARM_UP_SECONDS = 1.0
_LOOK_EVERY_SECONDS = 0.1
_LONGEST_SECONDS = 600.0
_ROWS_EACH = """
    SELECT (SELECT count(*) FROM tasks_app_taskevent) / (SELECT count(*) FROM tasks_app_task)
"""
_DONE = f"""
    SELECT id, extract(epoch FROM finished_at - created_at)::float8 * 1000 FROM tasks_app_task
    WHERE name = '{TASK}' AND finished_at IS NOT NULL
"""


def measure(databases: Databases, count: int, say: Callable[[str], None]) -> Figures:
    """Have `count` finished tasks deleted. Raises BenchError."""
    with databases.fresh() as url, closing(StoreConnection(url)) as store:
        say(f"{count:,} finished tasks …")
        kept = count * _KEPT_SECONDS // (MONTH_SECONDS - _KEPT_SECONDS) + 1
        fill(store, count + kept)
        # As upkeep would have done long ago; else it does so while this is measured.
        while store.run(roll_up(MOST_HOURS, LOOKS, GAMMA, SHORTEST_MS)) is not None:
            pass
        ((history,),) = store.execute(_ROWS_EACH)
        say("pruning …")
        pruner, others = Pruner(store, _KEPT_SECONDS), Others(url)
        with Child(manage("runworker"), environment(url, "bench.worker.site.settings")) as worker:
            others.start()
            _until_one_is_done(store, worker)
            turns = _take_turns(pruner, others, worker)
        done = dict(store.execute(_DONE))
    return Figures(
        tasks=pruner.deleted,
        history=pruner.deleted * history,
        seconds=pruner.seconds,
        batches=spread(pruner.batches),
        longest_else=pruner.longest_else,
        enqueue=turns.split([(each.began, each.took_ms) for each in others.enqueued]),
        done=turns.split(
            [(each.began, done[each.id]) for each in others.enqueued if each.id in done]
        ),
    )


def _until_one_is_done(store: StoreConnection, worker: Child) -> None:
    while not store.execute(f"{_DONE} LIMIT 1"):
        worker.check()
        time.sleep(_LOOK_EVERY_SECONDS)
    time.sleep(_WARM_UP_SECONDS)


def _take_turns(pruner: Pruner, others: Others, worker: Child) -> Turns:
    turns = Turns()
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not pruner.is_through:
        with turns.one(pruned=False):
            time.sleep(_TURN_SECONDS)
        with turns.one(pruned=True):
            pruner.work(_TURN_SECONDS)
        worker.check()
        if time.monotonic() > deadline:
            raise BenchError(f"Not everything was deleted within {_LONGEST_SECONDS:.0f} s.")
    others.stop()
    return turns

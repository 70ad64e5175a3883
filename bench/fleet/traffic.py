"""One way of waiting for 1,500 tasks, for a window of time: what it costs and what it gives."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from uuid import UUID

from bench.figures import percentile
from bench.fleet.clients import STORED_VERSION, Assignment, Talk
from bench.fleet.figures import Traffic
from bench.fleet.place import Fleet
from bench.fleet.queries import Asked, Counters
from bench.fleet.scenario import NEXT, START_AFTER_SECONDS, Deed, Scenario, ends_within, scenario
from bench.fleet.ways import Way
from bench.generator import Generator
from bench.meter import Meter
from bench.tasks import KNOWN_VERSION, StoredTasks, parts

LONGEST_WINDOW_SECONDS = 20
"""With settling and grace less than the shortest task lasts."""
# Every task has been asked for, and whoever lingers has begun to do so at a time of its own.
_SETTLE_SECONDS = 3.0
# Opening a connection takes longer than this only where nothing can be measured anyway.
_BEGIN_AFTER_SECONDS = 0.2
_SUBMITTED_WITHIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Window:
    """A time on the monotonic clock, and what the web processes had asked and used at both ends."""

    began: float
    ended: float
    before: Asked
    after: Asked
    cpu_seconds: float

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.ended - self.began

    def per_second(self, times: Iterable[float]) -> float:
        """How many of `times` were within it, each second."""
        return sum(self.began <= at < self.ended for at in times) / self.seconds

    def per_minute(self, counter: str) -> float:
        """How much a counter grew, each minute."""
        return (getattr(self.after, counter) - getattr(self.before, counter)) * 60 / self.seconds


class Drive:
    """Has the clients of one way go on, while tasks end and start, and counts in the middle."""

    def __init__(
        self, fleet: Fleet, generator: Generator, way: Way, tasks: int, window_seconds: float
    ) -> None:
        self._fleet = fleet
        self._generator = generator
        self._way = way
        self._count = tasks
        self._seconds = _SETTLE_SECONDS + window_seconds
        self._meter = Meter(fleet.running.server.pid)

    def measure(self) -> Traffic:
        """Go through it. Raises BenchError."""
        fleet = self._fleet
        running = fleet.tasks.begin(self._count)
        ends = ends_within(self._count, self._seconds)
        waiting = [] if self._way.submits else _texts(fleet.tasks.submit(ends))
        plan = scenario(_texts(running), waiting or [NEXT] * ends, self._seconds, random.Random())
        groups = parts(running, self._way.tasks)
        self._generator.connect(fleet.running.server.port, len(groups))
        worker = Worker(fleet.tasks, plan.deeds, time.monotonic() + _BEGIN_AFTER_SECONDS)
        self._converse(groups, plan, worker.began)
        with closing(Counters(fleet.database_url, fleet.web_role, fleet.redis_url)) as counters:
            worker.work_for(_SETTLE_SECONDS)
            began, before, cpu = time.monotonic(), counters.read(), self._meter.cpu_seconds()
            worker.work_for(self._seconds)
            ended, after, cpu = time.monotonic(), counters.read(), self._meter.cpu_seconds() - cpu
        worker.work_for(self._seconds + START_AFTER_SECONDS)
        window = Window(began, ended, before, after, cpu)
        return self._traffic(window, self._generator.finish(), worker.committed, len(groups))

    def _converse(self, groups: Sequence[Sequence[UUID]], plan: Scenario, begin_at: float) -> None:
        end_at = begin_at + self._seconds + self._way.grace_seconds
        known = [dict.fromkeys(_texts(group), KNOWN_VERSION) for group in groups]
        assignment = Assignment(self._way, known, plan.successors, begin_at, end_at)
        self._generator.begin("converse", assignment, within=end_at - time.monotonic())

    def _traffic(self, window: Window, talk: Talk, committed: Commits, clients: int) -> Traffic:
        changes = {key: at for key, at in committed.items() if window.began <= at < window.ended}
        # What a client knows of a start depends on when it learnt of the task.
        ends = {key: at for key, at in changes.items() if key[1] == KNOWN_VERSION + 1}
        late = [(talk.told[key] - at) * 1e3 for key, at in ends.items() if key in talk.told]
        return Traffic(
            size=self._fleet.size,
            way=self._way.name,
            clients=clients,
            requests_per_second=window.per_second(talk.sent),
            renewals_per_second=window.per_second(talk.idle),
            statements_per_minute=window.per_minute("statements"),
            reads_per_minute=window.per_minute("reads"),
            changes_per_minute=len(changes) * 60 / window.seconds,
            first_polls_per_minute=window.per_second(talk.first) * 60,
            commands_per_minute=window.per_minute("commands"),
            latency_p50_ms=percentile(late, 50),
            latency_p99_ms=percentile(late, 99),
            cpu_percent=window.cpu_seconds / window.seconds * 100,
            errors=len(talk.errors) + len(ends) - len(late),
            example=talk.errors[0][1] if talk.errors else "",
        )


Commits = dict[tuple[str, int], float]


class Worker:
    """Does what a scenario says, when it says so."""

    def __init__(self, tasks: StoredTasks, deeds: Sequence[Deed], began: float) -> None:
        self.began = began
        self.committed: Commits = {}
        """When each version had been committed."""
        self._tasks = tasks
        self._deeds = list(reversed(deeds))

    def work_for(self, seconds: float) -> None:
        """Do everything up to so long after the beginning, and return then."""
        while self._deeds and self._deeds[-1].at <= seconds:
            deed = self._deeds.pop()
            self._until(deed.at)
            self._do(deed)
        self._until(seconds)

    def _until(self, seconds: float) -> None:
        time.sleep(max(0.0, self.began + seconds - time.monotonic()))

    def _do(self, deed: Deed) -> None:
        if deed.task == NEXT:
            task, at = self._tasks.start_next(_SUBMITTED_WITHIN_SECONDS)
            self.committed[str(task), STORED_VERSION + 1] = at
        elif deed.deed == "start":
            self.committed[deed.task, STORED_VERSION + 1] = self._tasks.start(UUID(deed.task))
        else:
            (ended,) = self._tasks.end([UUID(deed.task)])
            self.committed[deed.task, KNOWN_VERSION + 1] = ended.done_at


def _texts(ids: Iterable[UUID]) -> list[str]:
    return [str(task_id) for task_id in ids]

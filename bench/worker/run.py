"""One run: enqueue a backlog, start a worker on it, then enqueue single tasks for the idle worker."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.child import ROOT, Child
from bench.errors import BenchError
from bench.figures import percentile
from bench.meter import Meter
from bench.producing import Producer
from bench.store import StoreConnection
from bench.tally import FOLDER_VARIABLE, Total, total
from bench.worker.figures import Figures
from bench.worker.subjects import Place, Subject

_RUN_SECONDS = 120.0
# A task itself says when it ran, so that looking may be rare and cheap; the store has to be asked.
_LOOK_EVERY_SECONDS = 0.01
_ASK_EVERY_SECONDS = 0.002
# Connecting, planning and importing are not what a call costs; the backlog has these tasks as well.
_WARM_UP_CALLS = 5
_PICKUPS = 100
_PICKUPS_WITHIN_SECONDS = 5.0
# The worker writes what it still has to, and goes to sleep.
_REST_SECONDS = 0.5


class Run:
    """Puts one subject through everything, at one size of batch."""

    def __init__(self, subject: Subject, batch: int, place: Place) -> None:
        self._subject = subject
        self._batch = batch
        self._place = place
        self._tally = Path()

    def measure(self) -> Figures:
        """Everything, in order. Raises BenchError where the subject can't do it."""
        self._install()
        with tempfile.TemporaryDirectory(prefix="bench-tally-") as folder:
            self._tally = Path(folder)
            variables = {**self._place.variables, FOLDER_VARIABLE: folder}
            with Producer(self._subject.produce, variables, talks=True) as producer:
                tasks, enqueued = self._enqueue(producer)
                with Child(self._subject.work(self._batch), variables) as worker:
                    return Figures(
                        subject=self._subject.name,
                        batch=self._batch,
                        tasks=tasks,
                        enqueued_per_second=enqueued,
                        **self._complete(worker, tasks),
                        **self._pick_up(worker, producer),
                    )

    def _install(self) -> None:
        if self._subject.install is None:
            return
        done = subprocess.run(
            self._subject.install,
            cwd=ROOT,
            env={**os.environ, **self._place.variables},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise BenchError(f"{self._subject.name} could not be set up:\n{done.stderr}")

    def _enqueue(self, producer: Producer) -> tuple[int, float]:
        """The backlog, and how many a second."""
        warm_up = _WARM_UP_CALLS * self._batch
        producer.enqueue(warm_up, self._batch)
        tasks = self._subject.tasks(self._batch)
        made = producer.enqueue(tasks, self._batch)
        self._settle()
        return tasks + warm_up, tasks / (made.ended - made.began)

    def _settle(self) -> None:
        """What autovacuum would have done soon, or in the middle of the run."""
        if self._place.database_url is not None:
            with closing(StoreConnection(self._place.database_url)) as store:
                store.execute("VACUUM ANALYZE")

    def _complete(self, worker: Child, tasks: int) -> dict[str, float]:
        """Wait for the first task, for the last, and until the store has none left."""
        self._until_ran(worker, 1)
        meter = Meter(worker.pid)
        before, cpu = total(self._tally), meter.cpu_seconds()
        ran = self._until_ran(worker, tasks)
        stored_at = self._stored_at(worker, ran)
        return {
            "ran_per_second": tasks / (ran.last - ran.first),
            "completed_per_second": tasks / (stored_at - ran.first),
            "cpu_us": (meter.cpu_seconds() - cpu) / (tasks - before.count) * 1e6,
        }

    def _pick_up(self, worker: Child, producer: Producer) -> dict[str, float]:
        """Single tasks, one after the other, not at any beat that the worker may have."""
        time.sleep(_REST_SECONDS)
        waits: list[float] = []
        deadline = time.monotonic() + _PICKUPS_WITHIN_SECONDS
        while len(waits) < _PICKUPS and time.monotonic() < deadline:
            count = total(self._tally).count
            made = producer.enqueue(1, 1)
            waits.append((self._until_ran(worker, count + 1).last - made.began) * 1e3)
            time.sleep(random.uniform(0.02, 0.04))
        return {"pickup_p50_ms": percentile(waits, 50), "pickup_p99_ms": percentile(waits, 99)}

    def _until_ran(self, worker: Child, count: int) -> Total:
        for _ in self._looks(worker, _LOOK_EVERY_SECONDS, f"did not run {count:,} tasks"):
            now = total(self._tally)
            if now.count >= count:
                return now
        raise AssertionError("looking ends with an error")

    def _stored_at(self, worker: Child, ran: Total) -> float:
        """Asked only once all ran, so that asking costs the run nothing."""
        if self._place.database_url is None:
            return ran.last
        with closing(StoreConnection(self._place.database_url)) as store:
            for _ in self._looks(worker, _ASK_EVERY_SECONDS, "did not store every end"):
                at = time.monotonic()
                if store.execute(self._subject.unfinished) == [(False,)]:
                    return at
        raise AssertionError("looking ends with an error")

    @staticmethod
    def _looks(worker: Child, every: float, failing: str) -> Iterator[None]:
        deadline = time.monotonic() + _RUN_SECONDS
        while time.monotonic() < deadline:
            yield
            worker.check()
            time.sleep(every)
        raise worker.failure(f"{failing} within {_RUN_SECONDS:.0f} s")

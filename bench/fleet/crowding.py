"""Many held at a fleet: single wake-ups, all at once, and a server that goes away under them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from bench.crowd import Crowd
from bench.fleet.figures import Crowded
from bench.fleet.place import Fleet
from bench.generator import RESET, Generator
from bench.meter import Meter

_PARK_SECONDS = 60.0
_DRAIN_SECONDS = 20.0
_DRAINING = b'"DRAINING"'


@dataclass(frozen=True, slots=True)
class Numbers:
    """How many are held for each measurement."""

    wake: int
    storm: int
    drain: int

    @property
    def most(self) -> int:
        """The largest of them."""
        return max(self.wake, self.storm, self.drain)


class Crowding:
    """Puts one fleet through everything; it is draining afterwards."""

    def __init__(self, fleet: Fleet, generator: Generator, numbers: Numbers) -> None:
        self._fleet = fleet
        self._generator = generator
        self._numbers = numbers
        self._crowd = Crowd(fleet.running, generator, "serve")
        self._meter = Meter(fleet.running.server.pid)

    def measure(self) -> Crowded:
        """Everything, in order. Raises BenchError where the fleet can't do it at all."""
        self._crowd.warm_up()
        self._hold(self._numbers.wake)
        wakes = self._crowd.wake_paced()
        self._hold(self._numbers.storm)
        storm = self._crowd.storm()
        self._hold(self._numbers.drain)
        return Crowded(
            size=self._fleet.size,
            held=self._numbers.wake,
            wake_p50_ms=wakes["wake_p50_ms"],
            wake_p99_ms=wakes["wake_p99_ms"],
            stormed=self._numbers.storm,
            **storm,
            drained=self._numbers.drain,
            **self._drain(),
            failed=self._crowd.failed,
        )

    def _hold(self, count: int) -> None:
        """New connections, a request on each, and nobody has anything left to do."""
        ids = self._fleet.tasks.begin(count)
        self._crowd.connect(count)
        self._crowd.park(ids)
        self._meter.until_rest(_PARK_SECONDS)

    def _drain(self) -> dict[str, float | int]:
        count = self._numbers.drain
        self._generator.begin("collect", count, _DRAIN_SECONDS, _DRAINING, within=_DRAIN_SECONDS)
        began = time.monotonic()
        os.kill(self._fleet.running.server.pid, signal.SIGTERM)
        answers = list(self._generator.finish())
        resets = sum(answer.text == RESET for answer in answers)
        drained = [answer.at for answer in answers if answer.fits]
        return {
            "drain_s": max(drained, default=float("nan")) - began,
            "resets": resets,
            "not_drained": count - resets - len(drained),
        }

"""One run: warm up, hold, wake one by one, hold again, wake all at once."""

from __future__ import annotations

from bench.crowd import MOST_WAKES, Crowd, Running
from bench.errors import BenchError
from bench.generator import Generator
from bench.holds.figures import Figures
from bench.meter import Meter

_PARK_SECONDS = 120.0


class Run:
    """Puts one running server through everything, with `held` requests."""

    def __init__(self, running: Running, generator: Generator, subject: str, held: int) -> None:
        self._server = running.server
        self._tasks = running.tasks
        self._crowd = Crowd(running, generator, subject)
        self._subject = subject
        self._held = held

    def measure(self) -> Figures:
        """Everything, in order. Raises BenchError where the server can't do it at all."""
        self._crowd.warm_up()
        meter = Meter(self._server.pid)
        ids = self._tasks.begin(self._held)
        cpu = meter.until_rest(_PARK_SECONDS)
        memory, resident = meter.memory_bytes(), meter.resident_bytes()
        self._crowd.connect(self._held)
        connected = meter.until_rest(_PARK_SECONDS)
        self._crowd.park(ids)
        parked = meter.until_rest(_PARK_SECONDS)
        self._check_held()
        per_hold = 1 / self._held
        memory_kb = (meter.memory_bytes() - memory) * per_hold / 1024
        resident_kb = (meter.resident_bytes() - resident) * per_hold / 1024
        threads = meter.threads()
        wakes = self._crowd.wake_paced()
        self._park_again(meter)
        return Figures(
            subject=self._subject,
            held=self._held,
            cpu_us=(parked - cpu) * per_hold * 1e6,
            cpu_request_us=(parked - connected) * per_hold * 1e6,
            memory_kb=memory_kb,
            resident_kb=resident_kb,
            threads=threads,
            **wakes,
            **self._crowd.storm(),
            failed=self._crowd.failed,
        )

    def _park_again(self, meter: Meter) -> None:
        """Use the connections that were answered for new tasks."""
        self._crowd.park(self._tasks.begin(min(self._held, MOST_WAKES)))
        meter.until_rest(_PARK_SECONDS)
        self._check_held()

    def _check_held(self) -> None:
        held = self._server.held()
        if held != self._held:
            raise BenchError(
                f"{self._subject} holds {held} of {self._held} requests:\n{self._server.log_tail()}"
            )

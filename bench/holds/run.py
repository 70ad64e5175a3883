"""One run: warm up, hold, wake one by one, hold again, wake all at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from uuid import UUID

from bench.errors import BenchError
from bench.figures import percentile
from bench.holds.figures import Figures
from bench.holds.generator import Answer, Generator
from bench.holds.subjects import HOLD_SECONDS, Running
from bench.holds.tasks import KNOWN_VERSION, Ended, parts
from bench.meter import Meter

# Few at a time: the memory that they leave free would be used again and not be counted.
_WARM_UP = 50
_WARM_UPS = 6
# Three seconds of commits; more would only take longer.
_MOST_WAKES = 1_500
_COMMITS_AT_ONCE = 5
_COMMITS_EVERY_SECONDS = 0.01
_PARK_SECONDS = 120.0
_ANSWER_SECONDS = 60.0
_OVER = b'"TERMINAL"'
_NOT_OVER = b'"STILL_RUNNING"'


class Run:
    """Puts one running server through everything, with `held` requests."""

    def __init__(self, running: Running, generator: Generator, subject: str, held: int) -> None:
        self._server = running.server
        self._tasks = running.tasks
        self._generator = generator
        self._subject = subject
        self._held = held
        self._waiting: list[UUID] = []  # by connection
        self._failed = 0

    def measure(self) -> Figures:
        """Everything, in order. Raises BenchError where the server can't do it at all."""
        self._warm_up()
        meter = Meter(self._server.pid)
        ids = self._tasks.begin(self._held)
        cpu = meter.until_rest(_PARK_SECONDS)
        memory, resident = meter.memory_bytes(), meter.resident_bytes()
        self._generator.connect(self._server.port, self._held)
        connected = meter.until_rest(_PARK_SECONDS)
        self._park(ids)
        parked = meter.until_rest(_PARK_SECONDS)
        self._check_held()
        per_hold = 1 / self._held
        memory_kb = (meter.memory_bytes() - memory) * per_hold / 1024
        resident_kb = (meter.resident_bytes() - resident) * per_hold / 1024
        threads = meter.threads()
        wakes = self._wake_paced()
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
            **self._storm(),
            failed=self._failed,
        )

    # Holding

    def _warm_up(self) -> None:
        """Let the server import, compile and allocate what it only does once, on every path that is measured."""
        self._generator.connect(self._server.port, _WARM_UP)
        for _ in range(_WARM_UPS):
            ids = self._tasks.begin(_WARM_UP)
            self._generator.ask([(at, _request(task_id, 0.1)) for at, task_id in enumerate(ids)])
            self._check(self._generator.collect(_WARM_UP, _ANSWER_SECONDS, _NOT_OVER), _WARM_UP)
            self._park(ids)
            self._begin_collecting(_WARM_UP)
            for part in parts(ids, _COMMITS_AT_ONCE):
                self._tasks.end(part)
            self._collected(_WARM_UP)
        self._generator.connect(self._server.port, 0)
        self._waiting.clear()

    def _park(self, ids: Sequence[UUID]) -> None:
        """Wait for each task, on the first connections."""
        self._waiting[: len(ids)] = ids
        self._generator.ask(
            [(at, _request(task_id, HOLD_SECONDS)) for at, task_id in enumerate(ids)]
        )

    def _park_again(self, meter: Meter) -> None:
        """Use the connections that were answered for new tasks."""
        self._park(self._tasks.begin(min(self._held, _MOST_WAKES)))
        meter.until_rest(_PARK_SECONDS)
        self._check_held()

    def _check_held(self) -> None:
        held = self._server.held()
        if held != self._held:
            raise BenchError(
                f"{self._subject} holds {held} of {self._held} requests:\n{self._server.log_tail()}"
            )

    # Waking

    def _wake_paced(self) -> dict[str, float]:
        """End the first tasks at a steady pace."""
        ids = self._waiting[:_MOST_WAKES]
        self._begin_collecting(len(ids))
        ended = list(self._end_paced(ids))
        return _wake_figures(ids, ended, self._collected(len(ids)))

    def _end_paced(self, ids: Sequence[UUID]) -> Iterator[Ended]:
        began = time.monotonic()
        for number, part in enumerate(parts(ids, _COMMITS_AT_ONCE)):
            due = began + number * _COMMITS_EVERY_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))
            yield from self._tasks.end(part)

    def _storm(self) -> dict[str, float]:
        """End everything at once, and wait for the last answer."""
        self._begin_collecting(self._held)
        ended = self._tasks.end(self._waiting)
        answers = self._collected(self._held)
        began = ended[0].sent_at
        return {
            "storm_s": max(answer.at for answer in answers) - began,
            "storm_commits_s": ended[-1].done_at - began,
        }

    def _begin_collecting(self, count: int) -> None:
        self._generator.begin("collect", count, _ANSWER_SECONDS, _OVER, within=_ANSWER_SECONDS)

    def _collected(self, count: int) -> list[Answer]:
        answers = list(self._generator.finish())
        self._check(answers, count)
        return answers

    def _check(self, answers: Sequence[Answer], expected: int) -> None:
        wrong = [answer for answer in answers if not answer.fits]
        self._failed += len(wrong) + expected - len(answers)
        if not answers or len(wrong) > expected / 2:
            example = wrong[0].text if wrong else "nothing"
            raise BenchError(
                f"{self._subject} answered {len(wrong)} of {expected} requests wrongly and "
                f"{expected - len(answers)} not at all, for example with:\n{example or 'a closed connection'}"
            )


def _wake_figures(
    ids: Sequence[UUID], ended: Sequence[Ended], answers: Sequence[Answer]
) -> dict[str, float]:
    end_of = {task_id: end for end in ended for task_id in end.ids}
    pairs = [(end_of[ids[answer.connection]], answer.at) for answer in answers]
    wakes = [(at - end.done_at) * 1e3 for end, at in pairs]
    return {
        "wake_p50_ms": percentile(wakes, 50),
        "wake_p95_ms": percentile(wakes, 95),
        "wake_p99_ms": percentile(wakes, 99),
        "wake_sent_p50_ms": percentile([(at - end.sent_at) * 1e3 for end, at in pairs], 50),
        "commits_per_second": len(ids) / (ended[-1].done_at - ended[0].sent_at),
    }


def _request(task_id: UUID, hold_seconds: float) -> bytes:
    return (
        f"GET /api/v1/tasks/{task_id}/long_poll?client_known_version={KNOWN_VERSION}"
        f"&max_hold_seconds={hold_seconds} HTTP/1.1\r\n"
        "Host: localhost\r\nAccept: application/json\r\n\r\n"
    ).encode()

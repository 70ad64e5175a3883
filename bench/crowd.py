"""Many requests that are held at one server, each for a task of its own, and the ends of those tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from bench.errors import BenchError
from bench.figures import percentile
from bench.generator import Answer, Generator
from bench.project import HOLD_SECONDS
from bench.server import Server
from bench.tasks import KNOWN_VERSION, Ended, Tasks, parts

# Few at a time: the memory that they leave free would be used again and not be counted.
_WARM_UP = 50
_WARM_UPS = 6
# Three seconds of commits; more would only take longer.
MOST_WAKES = 1_500
_COMMITS_AT_ONCE = 5
_COMMITS_EVERY_SECONDS = 0.01
_ANSWER_SECONDS = 60.0
_OVER = b'"TERMINAL"'
_NOT_OVER = b'"STILL_RUNNING"'


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is up, and whoever ends the tasks that are waited for there."""

    server: Server
    tasks: Tasks


class Crowd:
    """The clients of one running server. `failed` counts answers that were wrong or never came."""

    def __init__(self, running: Running, generator: Generator, subject: str) -> None:
        self.failed = 0
        self._server = running.server
        self._tasks = running.tasks
        self._generator = generator
        self._subject = subject
        self._waiting: list[UUID] = []  # by connection

    # Holding

    def warm_up(self) -> None:
        """Let the server import, compile and allocate what it only does once, on every path that is measured."""
        self.connect(_WARM_UP)
        for _ in range(_WARM_UPS):
            ids = self._tasks.begin(_WARM_UP)
            self._generator.ask([(at, _request(task_id, 0.1)) for at, task_id in enumerate(ids)])
            self._check(self._generator.collect(_WARM_UP, _ANSWER_SECONDS, _NOT_OVER), _WARM_UP)
            self.park(ids)
            self._begin_collecting(_WARM_UP)
            for part in parts(ids, _COMMITS_AT_ONCE):
                self._tasks.end(part)
            self._collected(_WARM_UP)
        self.connect(0)

    def connect(self, count: int) -> None:
        """Close every connection, and open so many."""
        self._generator.connect(self._server.port, count)
        self._waiting.clear()

    def park(self, ids: Sequence[UUID]) -> None:
        """Wait for each task, on the first connections."""
        self._waiting[: len(ids)] = ids
        self._generator.ask(
            [(at, _request(task_id, HOLD_SECONDS)) for at, task_id in enumerate(ids)]
        )

    # Waking

    def wake_paced(self) -> dict[str, float]:
        """End the first tasks at a steady pace."""
        ids = self._waiting[:MOST_WAKES]
        self._begin_collecting(len(ids))
        ended = list(self._end_paced(ids))
        return _wake_figures(ids, ended, self._collected(len(ids)))

    def _end_paced(self, ids: Sequence[UUID]) -> Iterator[Ended]:
        began = time.monotonic()
        for number, part in enumerate(parts(ids, _COMMITS_AT_ONCE)):
            due = began + number * _COMMITS_EVERY_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))
            yield from self._tasks.end(part)

    def storm(self) -> dict[str, float]:
        """End everything at once, and wait for the last answer."""
        count = len(self._waiting)
        self._begin_collecting(count)
        ended = self._tasks.end(self._waiting)
        answers = self._collected(count)
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
        self.failed += len(wrong) + expected - len(answers)
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

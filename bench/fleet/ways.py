"""The ways in which a client waits: what it asks, and what it learns from the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

LINGER_MS = 3_500
"""With fifteen clients fewer than 5 requests a second, and news is 3.5 s old at most."""
MOST_TASKS = 100
HOLD_SECONDS = 25.0
_GRACE_SECONDS = 2.5
# Before a client asks on after a submission that was held to no end: as long as after any other hold.
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class News:
    """A version of a task that an answer told of."""

    task: str
    version: int
    is_over: bool


@dataclass(frozen=True, slots=True)
class Way:
    """`tasks` is how many one client waits for; with `every_seconds` it asks at that beat and is never held.

    `remembers`: by a route that may answer from memory, as all of the project's may. `submits`: the client submits its
    next task itself and waits for it with the same request; the others are told of tasks that somebody submitted.
    """

    name: str
    tasks: int
    every_seconds: float | None = None
    remembers: bool = True
    submits: bool = False

    @property
    def grace_seconds(self) -> float:
        """Who was not told of an end after so long was never told, as far as this measurement goes."""
        return _GRACE_SECONDS + (LINGER_MS / 1e3 if self.tasks > 1 else 0)

    def request(self, known: Mapping[str, int], hold_seconds: float) -> bytes:
        """Ask for what is newer than the versions `known`; where that is none, submit a task and wait for its end."""
        if not known:
            return _SUBMISSION % round(hold_seconds)
        hold = f"max_hold_seconds={0 if self.every_seconds else round(hold_seconds, 3)}"
        if not self.remembers:
            (task,) = known
            path = f"{task}/plain_poll"
        elif self.tasks == 1:
            ((task, version),) = known.items()
            path = f"{task}/long_poll?client_known_version={version}&{hold}"
        else:
            wanted = "&".join(f"task={task}:{version}" for task, version in known.items())
            path = f"long_poll?{wanted}&{hold}&linger_ms={LINGER_MS}"
        return f"GET /api/v1/tasks/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def read(self, body: bytes, known: Mapping[str, int]) -> tuple[list[News], float]:
        """What is new in an answer, and the seconds to pause. Raises ValueError for one that tells of a problem."""
        answer = orjson.loads(body)
        if not known:
            # Of a task that it has submitted, and that goes on.
            return [News(answer["task_id"], answer["version"], False)], _PAUSE_SECONDS
        told: list[dict[str, Any]] = answer.get("tasks", [answer])
        if answer.get("problems"):
            raise ValueError(f"problems: {answer['problems'][0]}")
        news = [
            News(one["task_id"], one["version"], not one["should_continue_polling"])
            for one in told
            if one["version"] > known[one["task_id"]]
        ]
        return news, answer["recommended_client_backoff_ms"] / 1e3


_SUBMISSION = (
    b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=%d\r\n"
    b'Content-Type: application/json\r\nContent-Length: 23\r\n\r\n{"task":"bench.waited"}'
)

WAYS = (
    Way("plain", 1, every_seconds=1.0, remembers=False),
    Way("short", 1, every_seconds=1.0),
    Way("each", 1, submits=True),
    Way("hundred", MOST_TASKS),
)

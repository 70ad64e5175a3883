"""What a worker hears on its notification channel."""

from __future__ import annotations

from uuid import UUID

from psycopg import AsyncConnection

from tasks_app.events import emit
from tasks_app.wakeup import due, owed
from tasks_app.worker.claimer import Claimer
from tasks_app.worker.executor import Executor


class WorkEar:
    """Passes on `queue:<name>`, `room:`, `due:<seconds>`, `deliver:` and `cancel:<task id>`. Anything else is said and forgotten."""

    def __init__(self, claimer: Claimer, executor: Executor) -> None:
        self._claimer = claimer
        self._executor = executor

    async def connected(self, connection: AsyncConnection) -> None:
        """Look for work: what was said before this connection is lost. The heartbeat finds the cancels."""
        self._claimer.work_offered()

    def heard(self, channel: str, payload: str) -> None:
        """A notification arrived."""
        verb, _, rest = payload.partition(":")
        if verb == "queue" and rest:
            self._claimer.work_offered(rest)
        elif verb == "room":
            self._claimer.work_offered()
        elif verb == "due" and due.heard(rest):
            return
        elif verb == "deliver":
            owed.tell()
        elif verb == "cancel" and (task_id := _uuid(rest)) is not None:
            self._executor.cancel(task_id)
        else:
            emit("work.malformed", channel=channel, payload=payload[:100])

    def beat(self) -> None:
        """The connection lives; nothing depends on it here."""

    def lost(self) -> None:
        """The connection is gone: until the next one the poll interval and the heartbeat do its work."""


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None

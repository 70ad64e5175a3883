"""Held requests that show the whole rather than one task: any change at all wakes them."""

from __future__ import annotations

import secrets

from tasks_app.wakeup.topic import Alarm, Wake


class Onlookers:
    """Those of one process. What was changed, each reads for itself."""

    def __init__(self) -> None:
        self._alarms: set[Alarm] = set()
        self._home = secrets.token_hex(4)
        self._changes = 0

    @property
    def mark(self) -> str:
        """How far this process has come; who comes back with it misses nothing in between."""
        return f"{self._home}.{self._changes}"

    def is_stranger(self, mark: str) -> bool:
        """Is it the mark of another process? Which changes came since then is not known here."""
        return bool(mark) and not mark.startswith(f"{self._home}.")

    def join(self, mark: str) -> Alarm:
        """Register: what changes after `mark` wakes it, at once if it has happened. Leave with `leave`, always."""
        alarm = Alarm()
        self._alarms.add(alarm)
        if mark != self.mark and not self.is_stranger(mark):
            alarm.wake(Wake.ROW)
        return alarm

    def leave(self, alarm: Alarm) -> None:
        """Forget an alarm."""
        self._alarms.discard(alarm)

    def note_change(self) -> None:
        """Something has changed."""
        self._changes += 1
        self.wake_all(Wake.ROW)

    def wake_all(self, why: Wake) -> None:
        """End every wait."""
        for alarm in self._alarms:
            alarm.wake(why)

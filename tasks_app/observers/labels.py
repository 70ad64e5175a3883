"""Labels whose values come from elsewhere. Each value is a series for ever: their number has to have a bound."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from tasks_app import catalogue
from tasks_app.errors import UnknownTask

OTHER: Final = "(other)"
MOST_STRANGERS: Final = 100
"""Task types that no process here declares, which other releases and other hands have enqueued; a project's own tasks
of Django's Tasks framework count among them."""
_HTTP = "HTTP "
_STATUSES = frozenset(f"{_HTTP}{status.value}" for status in HTTPStatus)


class TaskLabels:
    """Names of task types: all that are declared here, and the first hundred others."""

    def __init__(self) -> None:
        self._strangers: set[str] = set()

    def label(self, name: str) -> str:
        """`name`, or what stands for one too many."""
        try:
            catalogue.find(name)
        except UnknownTask:
            return self._label_stranger(name)
        return name

    def _label_stranger(self, name: str) -> str:
        if name not in self._strangers:
            if len(self._strangers) >= MOST_STRANGERS:
                return OTHER
            self._strangers.add(name)
        return name


def failure_label(error: str) -> str:
    """Why a webhook was not taken. Receivers may answer with any number: only statuses that have a name are told apart."""
    return error if error in _STATUSES or not error.startswith(_HTTP) else f"{_HTTP}{OTHER}"

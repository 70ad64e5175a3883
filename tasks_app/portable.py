"""A task of Django's Tasks framework that can be pickled in every process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tasks_app.compat import Task
from tasks_app.results import find_task


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableTask(Task):
    """Pickled as the path of its function and what `using()` changed; loading raises UnknownTask where that is gone.

    Django's class names one of its own class methods for loading. Twisted replaces how methods are pickled, in a way
    that loses those of classes, and daphne imports Twisted. The backport's class can't be pickled at all.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        return _restored, (type(self), {**facts, "func": self.module_path})


def _restored(kind: type[PortableTask], facts: Mapping[str, Any]) -> PortableTask:
    return kind(**{**facts, "func": find_task(facts["func"]).func})

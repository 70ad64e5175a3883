"""Arguments that a task declares `sensitive` are shown to nobody: the database leaves them out of what a page reads."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Func, JSONField, Value

from tasks_app import catalogue
from tasks_app.errors import UnknownTask
from tasks_app.redaction import HIDDEN

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Sensitive:
    """Which arguments of a type are: by name, and by position where a call may give them so."""

    names: Sequence[str] = ()
    positions: Sequence[int] = ()

    def expression(self, column: str) -> Any:
        """`column` (args or kwargs) as SQL reads it, with a word in the place of each."""
        expression: Any = F(column)
        for key in self._keys(column):
            expression = Func(
                expression,
                Value(f"{{{_quoted(str(key))}}}"),
                template=f"jsonb_set(%(expressions)s::text[], '\"{HIDDEN}\"'::jsonb, false)",
                output_field=JSONField(),
            )
        return expression

    def values(self) -> list[Any]:
        """Each of them, as SQL reads it."""
        return [
            Func(
                F(column),
                Value(key),
                template="(%(expressions)s)",
                arg_joiner=" -> ",
                output_field=JSONField(),
            )
            for column in ("args", "kwargs")
            for key in self._keys(column)
        ]

    def hide(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The same for values that have been read."""
        return (
            [HIDDEN if at in self.positions else each for at, each in enumerate(args)],
            {name: HIDDEN if name in self.names else each for name, each in kwargs.items()},
        )

    def _keys(self, column: str) -> Sequence[Any]:
        return {"args": self.positions, "kwargs": self.names}.get(column, ())


def sensitive(name: str) -> Sensitive:
    """Of the task type of that name; of one that this process does not know, nothing is known to be."""
    try:
        task = catalogue.find(name)
    except UnknownTask:
        return Sensitive()
    return Sensitive(task.sensitive, tuple(_positions(task)))


def _positions(task: Any) -> Iterator[int]:
    for at, parameter in enumerate(inspect.signature(task.func).parameters.values()):
        if parameter.name in task.sensitive and parameter.kind in _POSITIONAL:
            yield at


def _quoted(key: str) -> str:
    """As an element of an array, written as Postgres reads it."""
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

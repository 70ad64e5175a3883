"""A statement with its parameters and the shape of its answer; executing it is somebody else's business."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Rows = Sequence[tuple[Any, ...]]

_FOLDER = Path(__file__).parent / "sql"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One statement to run. `shape` turns its rows into the verb's result."""

    statement: str
    params: Mapping[str, Any]
    shape: Callable[[Rows], T]
    prepare: bool | None = None
    """False keeps the server from planning for any parameters; None leaves it to the connection."""

    @property
    def sql(self) -> str:
        """The statement's text, with `%(name)s` parameters."""
        return text(self.statement)

    @property
    def sql_bytes(self) -> bytes:
        """`sql` as the driver sends it."""
        return encoded(self.statement)


@cache
def text(statement: str) -> str:
    """The text of `sql/<statement>.sql` without its first line, which is the promise and not the statement."""
    promise, _, body = (_FOLDER / f"{statement}.sql").read_text(encoding="utf-8").partition("\n")
    if not promise.startswith(f"-- {statement}:"):
        raise ValueError(
            f"{statement}.sql starts with {promise!r}; its first line says '-- {statement}: promise'."
        )
    return body


@cache
def encoded(statement: str) -> bytes:
    """`text(statement)` in UTF-8."""
    return text(statement).encode()

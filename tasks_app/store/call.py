"""A statement with its parameters and the shape of its answer; executing it is somebody else's business."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson

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
    without: tuple[str, ...] = ()
    """The parts of the statement that have nothing to do this time, and are left out."""

    @property
    def sql(self) -> str:
        """The statement's text, with `%(name)s` parameters."""
        return text(self.statement, self.without)

    @property
    def sql_bytes(self) -> bytes:
        """`sql` in UTF-8."""
        return encoded(self.statement, self.without)

    @property
    def positional(self) -> tuple[bytes, list[Any]]:
        """The statement with `$1`, `$2`… as Postgres takes it, and the values in that order."""
        sql, names = numbered(self.statement, self.without)
        return sql, [self.params[name] for name in names]


@cache
def text(statement: str, without: tuple[str, ...] = ()) -> str:
    """The text of `sql/<statement>.sql` without its first line, which is the promise and not the statement, and without
    the parts named: a part is what stands between the lines `--{ name` and `--}`."""
    promise, _, body = (_FOLDER / f"{statement}.sql").read_text(encoding="utf-8").partition("\n")
    if not promise.startswith(f"-- {statement}:"):
        raise ValueError(
            f"{statement}.sql starts with {promise!r}; its first line says '-- {statement}: promise'."
        )
    for part in without:
        body, cuts = re.subn(rf"^ *--{{ {part}\n.*?^ *--}}\n", "", body, flags=re.M | re.S)
        if not cuts:
            raise ValueError(
                f"{statement}.sql has no part {part!r}; one stands between '--{{ {part}' and '--}}'."
            )
    return body


@cache
def encoded(statement: str, without: tuple[str, ...] = ()) -> bytes:
    """`text(statement, without)` in UTF-8."""
    return text(statement, without).encode()


@cache
def numbered(statement: str, without: tuple[str, ...] = ()) -> tuple[bytes, tuple[str, ...]]:
    """`text(statement, without)` with numbers for its parameters, and their names. Once: psycopg would do it for each
    execution of a statement of more than 4,096 bytes, which takes as long as sending it."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name = found[1]
        return f"${numbers.setdefault(name, len(numbers) + 1)}" if name else "%"

    sql = re.sub(r"%(?:%|\((\w+)\)s)", number, text(statement, without))
    return sql.encode(), tuple(numbers)


def json_text(rows: list[dict[str, Any]]) -> str:
    """Rows for `json_to_recordset`: a tenth of what psycopg takes to write them as arrays, and one plan for any number
    of them, where arrays are planned for as many as they hold, each time anew."""
    return orjson.dumps(rows).decode()

"""Measurements from text: a worker's log, JSON lines or CSV, line by line and in bounded memory."""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TextIO

from tasks_app.insights.columns import BadRow, Columns, OtherOutcome
from tasks_app.insights.done import ASYNC_TASK_DONE
from tasks_app.insights.measured import Measured

FORMATS: Final = ("log", "jsonl", "csv")
LONGEST_LINE: Final = 65_536
# Of a row of CSV.
_MOST_LINES = 1_000
_DELIMITERS = ",;\t|"
_DECODER = json.JSONDecoder()

Line = tuple[int, str | None]
"""Its number, from 1, and its text; None where it is longer than LONGEST_LINE."""


class Refused(ValueError):
    """A file can't be read as what it is said to be, or not be written. Says why and what to do."""


class Reader(Protocol):
    """Reads the lines of one format into `found`; the first comes again with the rest."""

    def __call__(
        self, source: str, lines: Iterable[Line], columns: Columns, found: Measured
    ) -> None: ...


def read_into(
    found: Measured, source: str, stream: TextIO, columns: Columns, kind: str | None = None
) -> None:
    """Add the measurements of `stream` to `found`. `kind` None finds out by its name, `source`, and its first line.

    Raises Refused for CSV without the columns.
    """
    lines = bounded(stream)
    first = next((line for line in lines if line[1] is None or line[1].strip()), None)
    if first is None:
        return
    kind = kind or _kind(source, first[1] or "", columns)
    _READERS[kind](source, _again(first, lines), columns, found)


def bounded(stream: TextIO) -> Iterator[Line]:
    """The lines of `stream`, without ever holding more than LONGEST_LINE characters."""
    number = 0
    while text := stream.readline(LONGEST_LINE + 1):
        number += 1
        is_whole = len(text) <= LONGEST_LINE
        while len(text) > LONGEST_LINE and not text.endswith("\n"):
            text = stream.readline(LONGEST_LINE + 1)
        yield number, text if is_whole else None


def _again(first: Line, lines: Iterable[Line]) -> Iterator[Line]:
    yield first
    yield from lines


def _kind(source: str, line: str, columns: Columns) -> str:
    row = _json_in(line.strip())
    if row is not None:
        return "log" if "event" in row or ASYNC_TASK_DONE in line else "jsonl"
    return "csv" if source.endswith(".csv") or columns.are_in(_split(line)) else "log"


def _read_log(source: str, lines: Iterable[Line], columns: Columns, found: Measured) -> None:
    """Whatever is in front of the line's JSON; other lines are other people's."""
    own = Columns(only_task=columns.only_task, outcome="outcome", outcomes=columns.outcomes)
    for number, text in lines:
        if text is None or ASYNC_TASK_DONE not in text:
            found.others += 1
            continue
        row = _json_around(text, text.index(ASYNC_TASK_DONE))
        if row is None:
            found.refuse(source, number, f"{ASYNC_TASK_DONE} is in no JSON object")
        else:
            _take(source, number, row, own, found)


def _read_json_lines(source: str, lines: Iterable[Line], columns: Columns, found: Measured) -> None:
    for number, text in lines:
        row = None if text is None else _json_in(text.strip())
        if row is not None:
            _take(source, number, row, columns, found)
        elif text is None or text.strip():
            found.refuse(source, number, _no_row(text, "a JSON object"))


def _read_csv(source: str, lines: Iterable[Line], columns: Columns, found: Measured) -> None:
    numbered = iter(lines)
    _, header = next(numbered)
    names = _split(header or "")
    if not columns.are_in(names):
        raise Refused(
            f"{source}: the first line has the columns {_shown(names)}; name those that hold the task type "
            "and the duration with --task-column (or --only-task) and --duration-column."
        )
    if twice := [name for name in columns.wanted if names.count(name) > 1]:
        raise Refused(
            f"{source}: the first line has the column {twice[0]} twice; give one of them another name."
        )
    for (number, text), cells in _rows(numbered, _delimiter(header or "")):
        if cells is not None and len(cells) == len(names):
            _take(source, number, dict(zip(names, cells, strict=True)), columns, found)
        elif cells != []:
            found.refuse(source, number, _no_row(text, f"a row of {len(names)} cells"))


def _rows(lines: Iterator[Line], delimiter: str) -> Iterator[tuple[Line, Sequence[str] | None]]:
    """The cells of each row, or None, and its first line. A quoted cell may go on for lines; one that is never closed costs
    the line that it begins in, and no other."""
    ahead: deque[Line] = deque()
    while (line := ahead.popleft() if ahead else next(lines, None)) is not None:
        text, taken = line[1] or "", [line]
        is_open = text.count('"') % 2
        while is_open and len(taken) < _MOST_LINES and len(text) <= LONGEST_LINE:
            if (more := ahead.popleft() if ahead else next(lines, None)) is None:
                break
            taken.append(more)
            text += more[1] or ""
            is_open ^= (more[1] or "").count('"') % 2
        cells = None if None in (each[1] for each in taken) else _cells(text, delimiter)
        if cells is None:
            ahead.extendleft(reversed(taken[1:]))
        yield line, cells


def _take(
    source: str, number: int, row: Mapping[str, Any], columns: Columns, found: Measured
) -> None:
    try:
        task, milliseconds = columns.read(row)
        found.add(task, milliseconds)
    except OtherOutcome:
        found.of_other_outcome += 1
    except BadRow as error:
        found.refuse(source, number, str(error))


def _no_row(text: str | None, wanted: str) -> str:
    return f"it has over {LONGEST_LINE} characters" if text is None else f"it is not {wanted}"


def _shown(names: Sequence[str]) -> str:
    """As they are, unless they might steer a terminal."""
    text = ", ".join(names)[:200]
    return text if text.isprintable() else ascii(text)


def _json_in(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _json_around(text: str, position: int) -> dict[str, Any] | None:
    start = text.find("{")
    while 0 <= start < position:
        with suppress(ValueError, RecursionError):
            found, end = _DECODER.raw_decode(text, start)
            if end > position:
                return found
        start = text.find("{", start + 1)
    return None


def _delimiter(header: str) -> str:
    return max(_DELIMITERS, key=header.count)


def _split(header: str) -> list[str]:
    return [name.strip() for name in _cells(header, _delimiter(header)) or ()]


def _cells(text: str, delimiter: str) -> Sequence[str] | None:
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


_READERS: Final[Mapping[str, Reader]] = {
    "log": _read_log,
    "jsonl": _read_json_lines,
    "csv": _read_csv,
}

"""How a record is written: as a line of JSON for programs, or as a line for people. Never as two.

One of `tasks_app.done` is JSON already, and stays as it is.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

from tasks_app.observers.wording import one_line
from tasks_app.redaction import without_secrets

JSON: Final = "json"
PLAIN: Final = "line"
_PLAIN: Final = "{asctime} {levelname} {name} {process}: {message}"
_INDENT: Final = "    "
_DONE: Final = "tasks_app.done"


def formatter(kind: str = "") -> logging.Formatter:
    """For LOGGING: lines of `kind` "json" or "line"; by default for people where stderr is a terminal, else JSON."""
    if not kind:
        kind = PLAIN if sys.stderr and sys.stderr.isatty() else JSON
    if kind not in (JSON, PLAIN):
        raise ValueError(f"The format of log lines is {kind!r}; it must be {JSON!r} or {PLAIN!r}.")
    return JsonLines() if kind == JSON else PlainLines(_PLAIN, style="{")


class PlainLines(logging.Formatter):
    """One line an event, for people. The traceback of a fault follows indented: no line of it looks like an event."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line."""
        if record.name == _DONE:
            return record.getMessage()
        return one_line(without_secrets(super().formatMessage(record)))

    def formatException(
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        """Indented."""
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        """Indented as well."""
        return _indented(super().formatStack(stack_info))


class JsonLines(logging.Formatter):
    """One JSON document a line: `event`, `facts` where it is one of ours, and `message` in any case."""

    def format(self, record: logging.LogRecord) -> str:
        """The document. What JSON has no value for is its text."""
        if record.name == _DONE:
            return record.getMessage()
        said: dict[str, Any] = {
            "event": getattr(record, "event", None) or record.name,
            "at": moment(record.created),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        facts = getattr(record, "facts", None)
        if facts:
            said["facts"] = facts
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(_plain(said))


def _indented(text: str) -> str:
    return "\n".join(f"{_INDENT}{one_line(line)}" for line in without_secrets(text).splitlines())


def moment(seconds: float) -> str:
    """Seconds since 1970 as lines have them: UTC, to the millisecond."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    """As JSON has it, without secrets."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return without_secrets(value)
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case BaseException():
            return without_secrets(f"{type(value).__name__}: {value}")
        case Sequence():
            return [_plain(each) for each in value]
        case _:
            return without_secrets(str(value))

"""Facts as a line wants them: "1 task", "3 tasks", "4.0 s of silence"."""

from __future__ import annotations

import math
import re
from typing import Any

from tasks_app.redaction import without_secrets

_ES = ("ches", "sses", "shes", "xes")
# Whatever ends a line somewhere, moves a terminal's cursor, or can't be written.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Facts(dict[str, Any]):
    """An event's facts, which a line may also ask for in words.

    `%(count tasks)s` is the fact `count` with the plural given, or its singular for 1; `%(seconds silence)s` is how
    long nothing was heard, if anything ever was; `%(seconds delay)s` is how long until something; `%(queues names)s` is
    several names, or a text as it is. Whatever a text holds, it stays on its line, and its secrets stay out.
    """

    def __getitem__(self, asked: str) -> Any:
        """A fact, to be put into a line."""
        return said(super().__getitem__(asked))

    def __missing__(self, asked: str) -> str:
        """The words for a fact and a noun."""
        name, _, noun = asked.partition(" ")
        if not noun:
            raise KeyError(asked)
        value = super().__getitem__(name)
        if noun == "silence":
            return f"{value:.1f} s of silence" if math.isfinite(value) else "silence from the start"
        if noun == "delay":
            return delay(value)
        if noun == "names":
            return value if isinstance(value, str) else ", ".join(value)
        return counted(value, noun)


def said(value: Any) -> Any:
    """A value as a line may have it: numbers as they are, everything else as text that knows both %s and %r."""
    if isinstance(value, str):
        return one_line(without_secrets(value))
    return value if value is None or isinstance(value, int | float) else _Said(value)


class _Said:
    """Something that is written when somebody asks."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __str__(self) -> str:
        return str(said(str(self._value)))

    def __repr__(self) -> str:
        return str(said(repr(self._value)))


def one_line(text: str) -> str:
    """`text` with whatever could break a line as Python would write it in a literal."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def counted(number: float, nouns: str) -> str:
    """How many of what, in the plural given or its singular."""
    return f"{number:,} {singular(nouns) if number == 1 else nouns}"


def delay(seconds: float) -> str:
    """Some seconds; what comes almost at once is not "0.0 s"."""
    return f"{seconds:.1f} s" if seconds >= 0.1 else "less than 0.1 s"


def singular(noun: str) -> str:
    """Of a regular plural, perhaps with words before it."""
    if noun.endswith("ies"):
        return f"{noun[:-3]}y"
    return noun[:-2] if noun.endswith(_ES) else noun[:-1]

"""Facts as a line wants them: "1 task", "3 tasks", "4.0 s of silence"."""

from __future__ import annotations

import math
from typing import Any

_ES = ("ches", "sses", "shes", "xes")


class Facts(dict[str, Any]):
    """An event's facts, which a line may also ask for in words.

    `%(count tasks)s` is the fact `count` with the plural given, or its singular for 1; `%(seconds silence)s` is how
    long nothing was heard, if anything ever was; `%(seconds delay)s` is how long until something; `%(queues names)s` is
    several names, or a text as it is.
    """

    def __missing__(self, asked: str) -> str:
        """The words for a fact and a noun."""
        name, _, noun = asked.partition(" ")
        if not noun:
            raise KeyError(asked)
        value = self[name]
        if noun == "silence":
            return f"{value:.1f} s of silence" if math.isfinite(value) else "silence from the start"
        if noun == "delay":
            return delay(value)
        if noun == "names":
            return value if isinstance(value, str) else ", ".join(value)
        return counted(value, noun)


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

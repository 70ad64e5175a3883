"""Spans of time on a command line: `30d`, `36h`, `90m`, `45s`, or plain days."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

SECONDS_PER_DAY = 86_400
# A thousand years, which a database's calendar can go back and ahead.
_MOST_DAYS = 365_000
_SECONDS = {"": SECONDS_PER_DAY, "d": SECONDS_PER_DAY, "h": 3_600, "m": 60, "s": 1}


def seconds(text: str) -> float:
    """The span in seconds. Raises ArgumentTypeError, with how to write one."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([dhms]?)", text, re.ASCII)
    if found is None:
        raise ArgumentTypeError(
            f"{text!r} is no span of time; write days, or for example 36h, 90m or 30d"
        )
    span = float(found[1]) * _SECONDS[found[2]]
    if span > _MOST_DAYS * SECONDS_PER_DAY:
        raise ArgumentTypeError(f"{text!r} is more than {_MOST_DAYS:,} days; write a shorter span")
    return span

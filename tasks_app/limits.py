"""What holds for every row, for code that is imported before Django's apps are loaded: declarations of tasks."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from uuid_utils.compat import uuid7

MIN_PRIORITY, MAX_PRIORITY = -100, 100
MAX_NAME_LENGTH = 200
# A priority point is a head start of a minute: a static order that an index can hold, in which nothing starves.
HEAD_START_SECONDS = 60.0
# Outside these, or infinite, a moment can't be read back: one row would fail the reading of all that are read with it.
FIRST_MOMENT, LAST_MOMENT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# Thirty years: what is added to a moment has to stay one.
MAX_TIMEOUT_SECONDS = 1e9
# What may be asked for. In less than the least, an attempt could end before anybody had begun it, each time anew.
SHORTEST_SECONDS, LONGEST_SECONDS = 0.01, 604_800
SECONDS_RULE = f"must be at least {SHORTEST_SECONDS} and at most {LONGEST_SECONDS} seconds (a week)"


def are_seconds(value: float) -> bool:
    """True where a time limit, or the pause between two looks, can be so long."""
    return SHORTEST_SECONDS <= value <= LONGEST_SECONDS


def parse_id(text: str) -> uuid.UUID:
    """The id that is written so: five groups of hexadecimal digits. Raises ValueError for every other spelling, of which
    Python knows many: one id is one text, for whoever compares, caches or counts by it."""
    parsed = uuid.UUID(text)
    if str(parsed) != text.lower():
        raise ValueError(f"{text!r} is not how {parsed} is written.")
    return parsed


def new_task_id() -> uuid.UUID:
    """A UUIDv7: unique everywhere, and sorted by the time it was made."""
    return uuid7()

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


def new_task_id() -> uuid.UUID:
    """A UUIDv7: unique everywhere, and sorted by the time it was made."""
    return uuid7()

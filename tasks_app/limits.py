"""What holds for every row, for code that is imported before Django's apps are loaded: declarations of tasks."""

from __future__ import annotations

import uuid

from uuid_utils.compat import uuid7

MIN_PRIORITY, MAX_PRIORITY = -100, 100
MAX_NAME_LENGTH = 200


def new_task_id() -> uuid.UUID:
    """A UUIDv7: unique everywhere, and sorted by the time it was made."""
    return uuid7()

"""One line per task that is over, for programs to read: JSON as its text, and the same as fields of its record."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from logging import INFO
from typing import Final

from tasks_app.insights.done import ASYNC_TASK_DONE, Done
from tasks_app.observers.lines import moment

logger: Final = logging.getLogger("tasks_app.done")


def write(ended: Sequence[Done]) -> None:
    """Log `ended`, tasks that one commit made visible, at INFO."""
    if not logger.isEnabledFor(INFO):
        return
    at = moment(time.time())
    for done in ended:
        logger.handle(_record(done, at))


def _record(done: Done, at: str) -> logging.LogRecord:
    # Not logger.info(), which looks through the stack for who called it.
    record = logger.makeRecord(logger.name, INFO, __file__, 0, done.line(at), (), None)
    record.__dict__.update(done.fields(), event=ASYNC_TASK_DONE)
    return record

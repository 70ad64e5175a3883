"""What Django logs of a request that it refuses: a stranger's doing, and no fault of the project's."""

from __future__ import annotations

import logging
from typing import Final

MESSAGE_CHARACTERS: Final = 300
_SECURITY: Final = "django.security."
_REQUESTS: Final = "django.request"


class StrangersRequests(logging.Filter):
    """For a handler in LOGGING: the line of a refused request is a short warning without a traceback.

    Django logs a wrong Host as an error with one, and a path of any length as it came, so that whoever can reach the
    server could fill its log and wake whoever watches it for errors.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Lets every record pass."""
        if _is_refusal(record):
            record.levelno, record.levelname = logging.WARNING, "WARNING"
            record.exc_info = record.exc_text = record.stack_info = None
            record.msg, record.args = _short(record.getMessage()), ()
        return True


def _is_refusal(record: logging.LogRecord) -> bool:
    status = getattr(record, "status_code", None)
    return record.name.startswith((_SECURITY, _REQUESTS)) and status is not None and status < 500


def _short(message: str) -> str:
    if len(message) <= MESSAGE_CHARACTERS:
        return message
    return f"{message[: MESSAGE_CHARACTERS - 1]}…"

"""Tickets are part of a URL, and httpx logs each URL: they are hidden there."""

from __future__ import annotations

import logging
import re
from typing import Final

_TICKET: Final = re.compile(r"([?&]ticket=)[^&\s]+")


class _HideTickets(logging.Filter):
    """Lets every record pass, without the tickets in its arguments."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(map(_hidden, record.args))
        return True


def _hidden(argument: object) -> object:
    """Numbers stay numbers, for the sake of %d; a URL becomes text."""
    if isinstance(argument, int | float):
        return argument
    return _TICKET.sub(r"\1...", str(argument))


_filter: Final = _HideTickets()


def hide_tickets() -> None:
    """From now on, in this process. Once is enough; more often does not harm."""
    logging.getLogger("httpx").addFilter(_filter)

"""Secrets in URLs: tickets, which httpx would log, and whatever else a URL of the caller's own may hold."""

from __future__ import annotations

import logging
import re
from typing import Final

_TICKET: Final = re.compile(r"([?&]ticket=)[^&\s]+")
_USER: Final = re.compile(r"^([^/?#]*//)?[^/?#]*@")


def without_user(url: str) -> str:
    """A URL without the user and password that it may begin with."""
    return _USER.sub(r"\1", url)


def place(url: str) -> str:
    """Where a URL leads, without what nobody should read: its user, query and fragment."""
    return re.split("[?#]", without_user(url), maxsplit=1)[0]


def brief(text: str, most: int = 500) -> str:
    """What a server said, no longer than a message should be."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


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

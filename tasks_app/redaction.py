"""Secrets of a request, taken out of what logs and error reports print."""

from __future__ import annotations

from urllib.parse import unquote_plus

HIDDEN = "[hidden]"
_TICKET = "ticket"


def without_ticket(query: str) -> str:
    """A query string with every ticket's value hidden, however its name is encoded; the rest stays as it was sent."""
    if "=" not in query:
        return query
    return "&".join(_hidden(pair) for pair in query.split("&"))


def _hidden(pair: str) -> str:
    name, sign, _ = pair.partition("=")
    is_ticket = sign and unquote_plus(name, errors="replace") == _TICKET
    return f"{name}={HIDDEN}" if is_ticket else pair

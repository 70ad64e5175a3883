"""Secrets, taken out of what logs and error reports print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import unquote_plus

HIDDEN = "[hidden]"
_TICKET = "ticket"
# What secrets of ours look like, and what those of others usually stand behind. A text without any of the words that
# begin a pattern is not searched: nearly every line that is logged has none.
_SECRETS: Final = tuple(
    (words, re.compile(pattern, re.IGNORECASE))
    for words, pattern in (
        (("ap_",), r"\b(ap_[a-z0-9]{12}_)[a-z0-9]{16,}"),
        (("whsec_",), r"\b(whsec_)[\w+/=-]+"),
        (("ticket=",), r"([?&]ticket=)[^&\s'\"]+"),
        # The signature of a ticket or a lease token, which are nothing without it.
        ((":",), r"([0-9a-z]:)[\w-]{43}(?![\w-])"),
        (("://",), r"\b([a-z][a-z0-9+.-]*://[^\s/?#@:'\"]*:)[^\s'\"]+(?=@)"),
        (("bearer",), r"\b(Bearer\s+)[\w.~+/=-]{16,}"),
        (
            ("passw", "pwd", "secret", "key", "lease_token"),
            r"\b((?:password|passwd|pwd|sslpassword|secret|api_?key|lease_token)['\"]?\s*[=:]\s*)"
            r"(?:'[^']*'|\"[^\"]*\"|[^\s,;&)}\]]+)",
        ),
    )
)


def without_secrets(text: str) -> str:
    """Tokens, tickets, webhook secrets and passwords hidden, wherever in a text they are."""
    lowered = text.lower()
    for words, pattern in _SECRETS:
        if any(word in lowered for word in words):
            text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def without(values: Iterable[str], text: str) -> str:
    """These values hidden, as they are and as Python quotes them. The longest first: one may be a part of another."""
    forms = {form for value in values for form in (value, repr(value)[1:-1]) if form}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def texts_in(value: Any) -> Iterator[str]:
    """Every text and number in a value of JSON, however deep."""
    pending = [value]
    while pending:
        match pending.pop():
            case None | bool():
                continue
            case list() as parts:
                pending += parts
            case dict() as parts:
                pending += parts.values()
            case leaf:
                yield str(leaf)


def without_ticket(query: str) -> str:
    """A query string with every ticket's value hidden, however its name is encoded; the rest stays as it was sent."""
    if "=" not in query:
        return query
    return "&".join(_hidden(pair) for pair in query.split("&"))


def _hidden(pair: str) -> str:
    name, sign, _ = pair.partition("=")
    is_ticket = sign and unquote_plus(name, errors="replace") == _TICKET
    return f"{name}={HIDDEN}" if is_ticket else pair

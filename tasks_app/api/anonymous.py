"""Requests without credentials, for development: from this machine, to this machine, with nothing in between."""

from __future__ import annotations

import re
from functools import lru_cache

from django.http import HttpRequest

from asyncpoll.loopback import is_loopback
from tasks_app import conf

# What proxies, balancers and content networks add: by what such names have in common, so that the next vendor's is
# known, too. Refusing one that is harmless costs a developer a header.
_FORWARDED = re.compile(
    r"HTTP_(?:.*FORWARD.*|.*PROXY.*|.*(?:CLIENT|REAL|CONNECTING|REMOTE|ORIGIN|ORIGINATING|PEER|SOURCE)_?(?:IP|ADDR|HOST|USER|PORT)"
    r"|.*ORIGINAL_(?:HOST|FOR|UR[IL]|PROTO)|.*VIA|CDN_LOOP|X_SCHEME|FRONT_END_HTTPS"
    r"|(?:CF|X_ENVOY|X_AMZN?|X_AZURE|X_ARR|X_APPENGINE|X_CLOUD|FASTLY|FLY|X_AKAMAI|X_VERCEL|X_NF|X_SSL)_.*)"
)
_HOST = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9.-]{1,253}))(?::[0-9]{1,5})?", re.IGNORECASE)

# Of a name (253), brackets and a port.
_MOST_HOST_CHARACTERS = 264
_MOST_NAMES_CHARACTERS = 4_096


def is_anonymous_allowed(request: HttpRequest) -> bool:
    """True if anonymous use is on, and this request can only have come from a program on this machine."""
    return conf.current().ANONYMOUS and is_from_here(request)


def is_from_here(request: HttpRequest) -> bool:
    """True if this request can only have come from a program on this machine, as far as its headers tell."""
    facts = request.META
    return (
        _is_loopback(_host_name(facts.get("HTTP_HOST", "")))
        and _is_loopback(facts.get("REMOTE_ADDR") or "")
        and not _is_forwarded(tuple(facts))
        # A proxy that adds no header at all still speaks HTTP/1.0 to us, as nginx does unless it is told otherwise.
        and getattr(request, "scope", {}).get("http_version") != "1.0"
    )


def _host_name(host: str) -> str:
    # Nothing that is remembered may be as long as a stranger likes.
    return _parsed(host) if len(host) <= _MOST_HOST_CHARACTERS else ""


@lru_cache(maxsize=1024)
def _parsed(host: str) -> str:
    match = _HOST.fullmatch(host)
    return "" if match is None else match[1] or match[2]


def _is_forwarded(names: tuple[str, ...]) -> bool:
    short = sum(map(len, names)) <= _MOST_NAMES_CHARACTERS
    return _have_forwarded(names) if short else _have_forwarded.__wrapped__(names)


@lru_cache(maxsize=256)
def _have_forwarded(names: tuple[str, ...]) -> bool:
    return any(_FORWARDED.fullmatch(name) for name in names)


_is_loopback = lru_cache(maxsize=1024)(is_loopback)

"""What a client asks for in standard headers: `Prefer: wait` (RFC 7240) and `If-None-Match` (RFC 9110)."""

from __future__ import annotations

import re

from django.http import HttpRequest

from tasks_app.hold.window import Window

_ENTITY_TAG = re.compile(r'(?:W/)?"v([0-9]{1,18})"')
_PREFER_WAIT = re.compile(
    r'(?:^|[,;])\s*wait\s*=\s*"?([0-9]{1,9}(?:\.[0-9]{1,9})?)"?\s*(?=$|[,;])', re.IGNORECASE
)
# A list of more tags than this is no client's of ours.
_MOST_TAGS = 100


def preferred_wait(request: HttpRequest) -> float | None:
    """Seconds in `Prefer: wait=N`; a preference that can't be read is ignored, as the RFC says. HEAD never waits."""
    match = _PREFER_WAIT.search(request.META.get("HTTP_PREFER", ""))
    if match is None or request.method == "HEAD":
        return None
    return float(match[1])


def wait_applied(window: Window) -> str:
    """The value of `Preference-Applied`: the hold that was granted."""
    return f"wait={window.granted_seconds:.0f}"


def tagged_versions(request: HttpRequest) -> frozenset[int]:
    """The versions in If-None-Match; a tag that is not ours matches nothing."""
    given = request.META.get("HTTP_IF_NONE_MATCH", "").split(",", _MOST_TAGS)[:_MOST_TAGS]
    matches = (_ENTITY_TAG.fullmatch(tag.strip()) for tag in given)
    return frozenset(int(match[1]) for match in matches if match)


def matches_any(request: HttpRequest) -> bool:
    """True for `If-None-Match: *`, which every version matches."""
    return request.META.get("HTTP_IF_NONE_MATCH", "").strip() == "*"

"""Headers that every answer of the API carries, also those that serving itself gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


@lru_cache(maxsize=1)
def security_headers() -> Mapping[str, str]:
    """No guessing of types, no referrer, nothing loaded or framed; and HTTPS from now on, where Django is told so."""
    seconds = settings.SECURE_HSTS_SECONDS
    if not seconds:
        return _ALWAYS
    words = [
        f"max-age={seconds}",
        *(["includeSubDomains"] if settings.SECURE_HSTS_INCLUDE_SUBDOMAINS else []),
        *(["preload"] if settings.SECURE_HSTS_PRELOAD else []),
    ]
    return {**_ALWAYS, "Strict-Transport-Security": "; ".join(words)}


def _forget(*, setting: str, **_: Any) -> None:
    if setting.startswith("SECURE_HSTS"):
        security_headers.cache_clear()


setting_changed.connect(_forget)

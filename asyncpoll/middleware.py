"""What Django's own security middleware leaves to the project."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

# The admin has a <style> of its own, and draws a few icons from data: addresses; its scripts are all files.
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}


class SecurityHeaders(MiddlewareMixin):
    """On every page that Django serves, also on those that another middleware answers with. The outermost of all."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Add what is not there."""
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        # Django's debug pages have their scripts inside.
        if not settings.DEBUG:
            response.headers.setdefault("Content-Security-Policy", _POLICY)
        return response

"""Files out of a package, for pages that load nothing from another host."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from django.http import HttpResponse

from tasks_app.headers import security_headers

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
}


def file(path: Path, caching: str) -> HttpResponse:
    """The file at `path`, which is read once, with `caching` as its Cache-Control."""
    return content(_read(path), _TYPES[path.suffix], caching)


def page(path: Path, policy: str) -> HttpResponse:
    """The page at `path`, with a Content-Security-Policy of its own."""
    response = file(path, "no-cache")
    response.headers["Content-Security-Policy"] = policy
    return response


def content(body: bytes, media_type: str, caching: str) -> HttpResponse:
    """`body`, with the headers that every answer has."""
    response = HttpResponse(body, content_type=media_type)
    for name, value in security_headers().items():
        response.headers[name] = value
    response.headers["Cache-Control"] = caching
    response.headers["Content-Length"] = str(len(body))
    return response


@cache
def _read(path: Path) -> bytes:
    return path.read_bytes()

"""The demo's page: submits the demo task and shows its milestones. For development, as it asks for no credentials."""

from __future__ import annotations

from pathlib import Path

from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import Problem
from tasks_app.api.anonymous import is_anonymous_allowed
from tasks_app.api.files import file, page
from tasks_app.api.guard import api_view
from tasks_app.api.responses import problem

_FOLDER = Path(__file__).parent / "assets"
_ASSETS = frozenset({"demo.css", "demo.js"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


@api_view("GET", "HEAD")
async def demo(request: HttpRequest) -> HttpResponse:
    """GET /demo."""
    return page(_FOLDER / "demo.html", _POLICY) if is_anonymous_allowed(request) else _refused()


@api_view("GET", "HEAD")
async def demo_asset(request: HttpRequest, name: str) -> HttpResponse:
    """A part of that page."""
    if name not in _ASSETS or not is_anonymous_allowed(request):
        return _refused()
    return file(_FOLDER / name, "no-cache")


def _refused() -> HttpResponse:
    return problem(
        Problem.NOT_FOUND,
        404,
        "The demo page is for development: use it from this machine, without a proxy, where anonymous use is on, as it is "
        "under manage.py up.",
    )

"""The API's description, for programs and for people; nothing of it comes from another host."""

from __future__ import annotations

from pathlib import Path

from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import JSON_MEDIA_TYPE, Problem
from tasks_app.api.files import content, file, page
from tasks_app.api.guard import api_view
from tasks_app.api.identity import identify
from tasks_app.api.openapi import document
from tasks_app.api.responses import ProblemRaised, problem
from tasks_app.errors import TasksError

_FOLDER = Path(__file__).parent / "assets"
_ASSETS = frozenset({"swagger-ui.css", "swagger-ui-bundle.js", "start.js", "favicon.png"})
# No inline script. The bundle draws icons from data: URLs, and sets style attributes through the DOM, which is allowed.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@api_view("GET", "HEAD")
async def openapi(request: HttpRequest) -> HttpResponse:
    """GET …/openapi.json: for everybody, with the names of tasks for those who may submit them."""
    mounted_at = request.path.removesuffix("/openapi.json") or "/"
    body = document(mounted_at, await _may_submit(request))
    return content(body, JSON_MEDIA_TYPE, "no-store")


async def _may_submit(request: HttpRequest) -> bool:
    try:
        return "submit" in (await identify(request)).scopes
    except (ProblemRaised, TasksError):
        return False


@api_view("GET", "HEAD")
async def docs(request: HttpRequest) -> HttpResponse:
    """GET …/docs: Swagger UI."""
    return page(_FOLDER / "docs.html", _POLICY)


@api_view("GET", "HEAD")
async def asset(request: HttpRequest, name: str) -> HttpResponse:
    """A part of that page, out of this package."""
    if name not in _ASSETS:
        return problem(Problem.NOT_FOUND, 404, f"There is nothing at {request.path}; see …/docs.")
    return file(_FOLDER / name, "public, max-age=86400")

"""Faults of ours, or of a project's own hook, are for the log and not for the client."""

from __future__ import annotations

import httpx
import pytest
from django.core.checks import run_checks

from tasks_app.serving.handler import get_asgi_application

pytestmark = pytest.mark.django_db(transaction=True)


async def broken(request):
    """An AUTHENTICATE hook with a fault."""
    raise KeyError("SECRET_OF_THE_PROJECT")


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/v1/tasks/abc"), ("POST", "/api/v1/tasks")]
)
async def test_a_fault_is_a_problem_document_that_says_nothing_of_it(
    service, settings, debug, method, path
):
    """Also while DEBUG is on."""
    settings.DEBUG = debug
    settings.ASYNCPOLL = {
        **settings.ASYNCPOLL,
        "ANONYMOUS": False,
        "AUTHENTICATE": f"{__name__}.broken",
    }
    transport = httpx.ASGITransport(get_asgi_application())
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        response = await client.request(
            method, path, json={"task": "sample.add", "kwargs": {"a": 1}}
        )
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["type"] == "/problems/internal-error"
    assert "SECRET" not in response.text


@pytest.mark.parametrize("path", ["no.such.module", f"{__name__}.nothing", f"{__name__}.API"])
def test_a_hook_that_can_not_be_called_is_found_by_the_check(settings, path):
    """And not by the first request."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "AUTHENTICATE": path}
    found = [message for message in run_checks() if message.id == "tasks_app.E001"]
    assert len(found) == 1
    assert "AUTHENTICATE" in found[0].msg


API = "/api/v1"

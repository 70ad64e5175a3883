"""What every answer carries, and which pages of other origins may read it."""

from __future__ import annotations

import asyncio

import pytest
from django.test import Client

from tasks_app import conf
from tasks_app.errors import ConfigurationError
from tasks_app.hold.admission import admission
from tasks_app.limits import new_task_id
from tasks_app.serving.problems import TOO_SLOW
from tasks_app.store import delete
from tests.integration.api_support import API, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "https://app.example.org"


def is_safe(headers):
    """Are the headers there that a browser heeds?"""
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] in ("no-referrer", "same-origin")


async def test_every_answer_of_the_api_has_security_headers(client, service):
    """Answers, problems, those that no view gives, and health."""
    task_id = await stored(service)
    answers = [
        await client.get(f"{API}/tasks/{task_id}"),
        await client.get(f"{API}/tasks/{task_id}/long_poll"),
        await client.get(f"{API}/nope"),
        await client.get(f"{API}/tasks/{task_id}?%ff=%ff&wait=%ff"),
        await client.post(f"{API}/tasks", content=b"x" * 2_000_000),
        await client.put(f"{API}/tasks"),
        await client.options(f"{API}/tasks"),
        await client.get("/healthz"),
        await client.get("/readyz"),
    ]
    for answer in answers:
        is_safe(answer.headers)
        assert "strict-transport-security" not in answer.headers


async def test_https_from_now_on_is_said_where_django_says_it(client, service, settings):
    """With the same words."""
    settings.SECURE_HSTS_SECONDS, settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = 60, True
    task_id = await stored(service)
    for path in ("", "/long_poll", "/x"):
        answer = await client.get(f"{API}/tasks/{task_id}{path}")
        assert answer.headers["strict-transport-security"] == "max-age=60; includeSubDomains"
    assert b"Strict-Transport-Security: max-age=60" in TOO_SLOW.message()


def test_what_is_written_to_a_raw_connection_has_them_too():
    """408, 400 and 431 of the server itself."""
    lines = TOO_SLOW.message().partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    is_safe({name.lower(): value for name, value in (line.split(": ", 1) for line in lines)})


@pytest.mark.parametrize(
    "path",
    [
        "/admin/login/", "/admin/", "/", "/nope", "/static/nope.css", "/static/admin/css/base.css", "/static/tasks_app/asyncpoll.js",
        "/favicon.ico", "/demo",
    ],
)  # fmt: skip
def test_every_page_of_the_admin_has_security_headers(path):
    """Also redirects, pages that are not there, and hosts that are refused."""
    is_safe(Client().get(path).headers)
    is_safe(Client().get(path, headers={"host": "evil.example.org"}).headers)


def test_a_page_that_fails_has_them_too(monkeypatch):
    """500, by Django itself."""

    def broken(*_):
        raise ValueError("broken")

    monkeypatch.setattr("django.contrib.admin.sites.AdminSite.each_context", broken)
    answer = Client(raise_request_exception=False).get("/admin/login/")
    assert answer.status_code == 500
    is_safe(answer.headers)


@pytest.fixture
def shared(settings):
    """One page may call the API."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "CORS_ORIGINS": [PAGE]}


async def preflight(client, path, origin, method="GET"):
    return await client.options(
        path,
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "authorization,content-type",
        },
    )


async def test_a_listed_page_may_call_every_route(client, service, shared):
    """Preflight, answers and problems; what it needs is exposed; no cookie ever goes with it."""
    task_id = await stored(service)
    for path, method in (
        ("/tasks", "POST"),
        (f"/tasks/{task_id}", "GET"),
        (f"/tasks/{task_id}/long_poll", "GET"),
        (f"/tasks/{task_id}/status", "GET"),
        (f"/tasks/{task_id}/cancel", "POST"),
        ("/queues/q/claim", "POST"),
    ):
        asked = await preflight(client, f"{API}{path}", PAGE, method)
        assert asked.status_code == 204 and asked.content == b""
        assert asked.headers["access-control-allow-origin"] == PAGE
        assert method in asked.headers["access-control-allow-methods"].split(", ")
        allowed = asked.headers["access-control-allow-headers"].lower()
        assert "authorization" in allowed and "content-type" in allowed
        answer = await client.request(method, f"{API}{path}", headers={"Origin": PAGE})
        for given in (asked, answer):
            assert given.headers["access-control-allow-origin"] == PAGE
            assert given.headers["vary"] == "Origin"
            assert "access-control-allow-credentials" not in given.headers
            for name in ("ETag", "Location", "Retry-After"):
                assert name in given.headers["access-control-expose-headers"]
    refused = await client.get(f"{API}/nope", headers={"Origin": PAGE})
    assert refused.headers["access-control-allow-origin"] == PAGE


async def test_a_listed_page_may_read_every_refusal(client, service, shared, settings, monkeypatch):
    """What it may not, is not there, comes too often, does not fit, and is gone."""
    task_id = await stored(service)
    url = f"{API}/tasks/{task_id}/long_poll"
    held = asyncio.ensure_future(
        client.get(f"{url}?client_known_version=1", headers={"Origin": PAGE})
    )
    await aeventually(lambda: admission.held == 1)
    await service.pool.run(delete([task_id]))
    limits = {**settings.ASYNCPOLL, "MAX_SHORT_POLLS_PER_SECOND": 1}
    another = f"{API}/tasks/{await stored(service)}/long_poll"

    async def ask(url, method="GET", content=None, full=False, **changed):
        settings.ASYNCPOLL = {**limits, **changed}
        monkeypatch.setattr(admission, "_ceiling", 0 if full else None)
        return await client.request(method, url, content=content, headers={"Origin": PAGE})

    answers = [
        await held,
        await ask(another),
        await ask(another),
        await ask(another, ANONYMOUS=False),
        await ask(another, full=True),
        await ask(f"{API}/tasks/{new_task_id()}"),
        await ask(f"{API}/tasks/nope"),
        await ask(f"{API}/tasks", "PUT"),
        await ask(f"{API}/tasks", "POST", b"x" * 2_000_000),
    ]
    codes = [answer.status_code for answer in answers]
    assert codes == [410, 200, 429, 401, 503, 404, 400, 405, 413]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert answer.headers["vary"] == "Origin"
        assert "Retry-After" in answer.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example.org", "null", "*", "", PAGE + "/", PAGE + ":443", PAGE.upper(), "http://app.example.org",
        PAGE + ".evil.org", "https://xapp.example.org", f"{PAGE}, {PAGE}", PAGE + "\x00", "https://app.example.org:8443",
    ],
)  # fmt: skip
async def test_any_other_page_may_not(client, service, shared, origin):
    """Exactly the origin, and no pattern."""
    task_id = await stored(service)
    for answer in (
        await preflight(client, f"{API}/tasks/{task_id}/long_poll", origin),
        await client.get(f"{API}/tasks/{task_id}/long_poll", headers={"Origin": origin}),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["vary"] == "Origin"


async def test_two_origins_are_none(client, shared):
    """A proxy in between took the first for another."""
    headers = [("Origin", PAGE), ("Origin", "https://evil.example.org")]
    answer = await client.get(f"{API}/nope", headers=headers)
    assert "access-control-allow-origin" not in answer.headers


async def test_no_page_may_by_default(client, service):
    """Nothing is said of origins at all."""
    answer = await preflight(client, f"{API}/tasks", PAGE)
    assert not [name for name in answer.headers if name.startswith(("access-control", "vary"))]


async def test_the_admin_is_never_shared(client, shared):
    """It has cookies."""
    for answer in (
        await preflight(client, "/admin/login/", PAGE),
        await client.get("/admin/login/", headers={"Origin": PAGE}),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "origin",
    [
        "*", "null", "app.example.org", "https://app.example.org/", "https://app.example.org/x", "https://*.example.org",
        "https://App.example.org", "https://app.example.org:443", "http://app.example.org:80", "ftp://app.example.org",
        "https://user@app.example.org", "https://app.example.org:x", "https://", "",
    ],
)  # fmt: skip
def test_an_origin_that_no_browser_sends_is_an_error(origin):
    """It would never match, or match too much."""
    with pytest.raises(ConfigurationError, match=r"CORS_ORIGINS.*no wildcard"):
        conf.parse({"CORS_ORIGINS": [origin]})


def test_origins_are_as_browsers_send_them():
    """Names, addresses, ports that are not the scheme's own."""
    origins = [
        "https://a.example",
        "http://localhost:3000",
        "https://[::1]:8443",
        "http://10.0.0.1:443",
    ]
    assert tuple(origins) == conf.parse({"CORS_ORIGINS": origins}).CORS_ORIGINS

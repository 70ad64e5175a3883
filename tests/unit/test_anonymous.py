"""Anonymous use is for this machine alone: every sign of anything in between ends it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import AsyncRequestFactory

from tasks_app.api import anonymous
from tasks_app.api.anonymous import is_anonymous_allowed


@pytest.fixture(autouse=True)
def switched_on(settings: Any) -> None:
    """Otherwise nothing is allowed."""
    settings.ASYNCPOLL = {"ANONYMOUS": True}


def allowed(host: str = "localhost:8000", client: str = "127.0.0.1", **facts: str) -> bool:
    """Would a request with these headers be let in?"""
    request = AsyncRequestFactory().get("/")
    request.META.update(HTTP_HOST=host, REMOTE_ADDR=client, **facts)
    return is_anonymous_allowed(request)


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.2:80", "[::1]", "[::1]:8000"],
)
def test_a_program_on_this_machine_is_let_in(host: str) -> None:
    """By any of its own names."""
    assert allowed(host)
    assert allowed(host, client="::1")
    assert allowed(host, client="::ffff:127.0.0.1")


@pytest.mark.parametrize(
    "host",
    [
        "", "example.org", "localhost.", "localhost.example.org", "localhost:80@example.org", "localhost:x", "localhost:",
        "localhost,example.org", "localhost, localhost", "[::1", "[::1]x", "[::1].example.org", "::1", "[localhost]x",
        "127.0.0.1.example.org", "2130706433", "0x7f.1", "127.1", "0.0.0.0", "[::]", "[::ffff:10.0.0.1]", "localhost\x00",
        " localhost", "user@localhost", "localhost/", "localhost#", "１２７.0.0.1", "10.0.0.1", "localhost:123456",
    ],
)  # fmt: skip
def test_any_other_host_is_refused(host: str) -> None:
    """A page whose name was made to point here, a proxy that passes its own name on, and what is no host at all."""
    assert not allowed(host)


@pytest.mark.parametrize("client", ["10.0.0.1", "::ffff:10.0.0.1", "", "fe80::1", "unix:"])
def test_any_other_address_is_refused(client: str) -> None:
    """Also none at all, as behind a socket in the file system."""
    assert not allowed(client=client)


@pytest.mark.parametrize(
    "header",
    [
        "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server",
        "X-Original-Forwarded-For", "X-Real-IP", "Via", "CF-Connecting-IP", "CF-Ray", "True-Client-IP", "X-Client-IP",
        "X-Cluster-Client-IP", "Fastly-Client-IP", "Fly-Client-IP", "CDN-Loop", "X-Envoy-External-Address",
        "X-Amzn-Trace-Id", "X-Amz-Cf-Id", "X-Azure-ClientIP", "X-Original-Host", "X-Original-URL", "X-Appengine-User-IP",
        "X-ProxyUser-Ip", "X-Remote-Addr", "X-Originating-IP", "Client-IP", "X-Forwarded", "Proxy-Connection",
        "X-ARR-LOG-ID", "X-Akamai-Config-Log-Detail", "X-Vercel-Id", "X-Nf-Request-Id", "X-SSL-Cipher", "X-Scheme",
        "X-Peer-Addr", "WL-Proxy-Client-IP", "Incap-Client-IP",
    ],
)  # fmt: skip
def test_whatever_a_proxy_adds_is_a_refusal(header: str) -> None:
    """Those of today, and by their parts those of the next vendor."""
    assert not allowed(**{f"HTTP_{header.upper().replace('-', '_')}": "x"})


@pytest.mark.parametrize(
    "header",
    [
        "Accept", "Accept-Encoding", "User-Agent", "Prefer", "If-None-Match", "Idempotency-Key", "Origin", "Referer",
        "Sec-Fetch-Site", "Sec-CH-UA-Platform", "X-Requested-With", "X-Request-ID", "Traceparent", "Cookie", "Connection",
        "Upgrade-Insecure-Requests", "Cache-Control", "Priority", "X-Client-Version",
    ],
)  # fmt: skip
def test_what_clients_send_by_themselves_is_none(header: str) -> None:
    """Browsers, curl, and libraries."""
    assert allowed(**{f"HTTP_{header.upper().replace('-', '_')}": "x"})


def test_a_proxy_that_says_nothing_speaks_an_old_http() -> None:
    """nginx's default: HTTP/1.0, the upstream's own name as Host, and not one header of its own."""
    request = AsyncRequestFactory().get("/")
    request.META.update(HTTP_HOST="127.0.0.1:8000", REMOTE_ADDR="127.0.0.1")
    assert is_anonymous_allowed(request)
    request.scope["http_version"] = "1.0"
    assert not is_anonymous_allowed(request)


def test_it_has_to_be_switched_on(settings: Any) -> None:
    """It is off by default."""
    settings.ASYNCPOLL = {}
    assert not allowed()


def test_nothing_that_a_stranger_may_make_long_is_remembered() -> None:
    """A thousand remembered hosts of a request line's length would be a hundred megabytes."""
    before = (
        anonymous._parsed.cache_info().currsize,
        anonymous._have_forwarded.cache_info().currsize,
    )
    assert not allowed(f"{'a' * 300}.localhost")
    assert not allowed(f"localhost:{'0' * 300}")
    assert allowed("localhost", **{f"HTTP_{'X' * 5_000}": "x"})
    assert not allowed("localhost", **{f"HTTP_{'X' * 5_000}_VIA": "x"})
    after = anonymous._parsed.cache_info().currsize, anonymous._have_forwarded.cache_info().currsize
    assert after[0] <= before[0] + 1 and after[1] == before[1]

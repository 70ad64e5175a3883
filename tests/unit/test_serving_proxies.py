"""Whose address a request has that came through gateways."""

from typing import Any

import pytest

from tasks_app.errors import ConfigurationError
from tasks_app.serving.proxies import client_of, networks, with_client

TRUSTED = networks(("10.0.0.0/24", "2001:db8::/64"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", "192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "6.6.6.6, 192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "6.6.6.6, 192.0.2.7, 10.0.0.2", "192.0.2.7"),
        ("10.0.0.1", "10.0.0.3", "10.0.0.3"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "6.6.6.6, unknown", "10.0.0.1"),
        ("10.0.0.1", "6.6.6.6, nonsense, 10.0.0.2", "10.0.0.2"),
        ("::ffff:10.0.0.1", "192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "192.0.2.7:4711", "192.0.2.7"),
        ("2001:db8::1", "[2001:db9::7]:4711", "2001:db9::7"),
        ("10.0.0.1", "::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.1", "6.6.6.6", "192.0.2.1"),
        ("", "6.6.6.6", ""),
    ],
)
def test_only_trusted_proxies_are_believed(peer: str, forwarded: str, client: str) -> None:
    """From the right, up to the first address that is not one of ours."""
    assert client_of(peer, forwarded, TRUSTED) == client


def _scope(*forwarded: bytes) -> dict[str, Any]:
    return {
        "client": ["10.0.0.1", 5],
        "headers": [(b"x-forwarded-for", value) for value in forwarded],
    }


def test_without_trusted_proxies_the_header_is_nobodys(settings: Any) -> None:
    """The default."""
    settings.ASYNCPOLL = {}
    scope = _scope(b"192.0.2.7")
    assert with_client(scope) is scope


def test_a_header_that_is_sent_twice_is_read_as_one(settings: Any) -> None:
    """Else a client could put its own behind the proxy's."""
    settings.ASYNCPOLL = {"TRUSTED_PROXIES": ["10.0.0.1"]}
    scope = with_client(_scope(b"6.6.6.6", b"192.0.2.7, 10.0.0.1"))
    assert scope["client"] == ("192.0.2.7", 0)


@pytest.mark.parametrize("text", ["10.0.0.1/8", "gateway.example.org", ""])
def test_what_is_no_network_is_refused(text: str) -> None:
    """At start, with an example."""
    with pytest.raises(ConfigurationError, match="no address and no network"):
        networks((text,))

"""A developer's settings are not served to others."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tasks_app.errors import ConfigurationError
from tasks_app.serving.safety import host_of, refuse_exposure

KEY = "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@pytest.fixture(autouse=True)
def good(settings: Any) -> Any:
    """Settings fit for everybody."""
    settings.DEBUG = False
    settings.SECRET_KEY = KEY
    settings.ASYNCPOLL = {}
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
    return settings


def spoil(settings: Any, what: str) -> None:
    match what:
        case "DEBUG":
            settings.DEBUG = True
        case "Anonymous use":
            settings.ASYNCPOLL = {"ANONYMOUS": True}
        case "SECRET_KEY":
            settings.SECRET_KEY = "django-insecure-" + KEY


FAULTS = pytest.mark.parametrize("what", ["DEBUG", "Anonymous use", "SECRET_KEY"])


@FAULTS
@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "a socket in the file system"]
)
def test_a_public_address_is_refused_with_the_fault_and_its_remedy(
    good: Any, what: str, host: str
) -> None:
    """DEBUG, anonymous use, a default key."""
    refuse_exposure(host)
    spoil(good, what)
    with pytest.raises(
        ConfigurationError,
        match=f"as it listens on {host}. {what}.*(set it to False|set ASYNCPOLL|set SECRET_KEY)",
    ):
        refuse_exposure(host)


@FAULTS
@pytest.mark.parametrize(
    "name", ["example.org", ".example.org", "*", "10.0.0.1", "[fe80::1]", "localhost.example.org"]
)
def test_a_public_name_is_refused_wherever_the_server_listens(
    good: Any, what: str, name: str
) -> None:
    """Behind a proxy, or under a server that does not tell its address."""
    good.ALLOWED_HOSTS = ["localhost", name]
    refuse_exposure()
    spoil(good, what)
    for host in (None, "127.0.0.1"):
        with pytest.raises(ConfigurationError, match=f"ALLOWED_HOSTS has .*{what}"):
            refuse_exposure(host)


@FAULTS
@pytest.mark.parametrize("host", [None, "localhost", "127.0.0.1", "::1", "127.0.0.2"])
def test_a_desk_may_do_as_it_likes(good: Any, what: str, host: str | None) -> None:
    """Nobody else gets there."""
    good.ALLOWED_HOSTS = ["localhost", ".localhost", "app.localhost", "127.0.0.1", "[::1]"]
    spoil(good, what)
    refuse_exposure(host)


@pytest.mark.parametrize("key", ["hunter2", "x" * 100, "django-insecure-" + KEY])
def test_a_key_that_can_be_guessed_is_none(good: Any, key: str) -> None:
    """By Django's own measure."""
    good.SECRET_KEY = key
    with pytest.raises(ConfigurationError, match="SECRET_KEY") as caught:
        refuse_exposure("0.0.0.0")
    assert key not in str(caught.value)


def test_all_that_is_wrong_is_said_at_once(good: Any) -> None:
    """One start finds out everything."""
    for what in ("DEBUG", "Anonymous use", "SECRET_KEY"):
        spoil(good, what)
    with pytest.raises(ConfigurationError, match=r"DEBUG.*Anonymous use.*SECRET_KEY"):
        refuse_exposure("0.0.0.0")


def test_an_inherited_socket_tells_where_it_listens(tmp_path: Path) -> None:
    """A path is there for a proxy; what is no socket fails by itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert host_of(listener.fileno()) == "127.0.0.1"
        assert listener.getsockname()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert host_of(listener.fileno()) == "a socket in the file system"
    with Path(os.devnull).open() as nothing:
        assert host_of(nothing.fileno()) is None

"""What `up` refuses, and how it says so."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from asyncpoll.loopback import is_loopback
from asyncpoll.preflight import (
    UpError,
    check_database,
    check_port,
    only_one,
    refuse_other_settings,
)
from tests.support import free_port


def test_a_taken_port_is_named_with_the_remedy() -> None:
    """Somebody listens there already."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UpError, match=rf"127\.0\.0\.1, port {port}: another program .* --port"):
            check_port("127.0.0.1", port)


def test_a_project_with_settings_of_its_own_is_refused(settings: Any) -> None:
    """Its database is not up's to migrate, nor its users to add to."""
    refuse_other_settings()
    settings.ROOT_URLCONF = "shop.urls"
    with pytest.raises(UpError, match=r"its own settings, and .* are a project's: .* serve"):
        refuse_other_settings()


def test_a_free_port_passes() -> None:
    """And stays free."""
    port = free_port()
    check_port("127.0.0.1", port)
    check_port("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
def test_a_host_that_is_not_this_machine_is_named(host: str) -> None:
    """An unknown name, and an address that is somebody else's."""
    with pytest.raises(UpError, match=f"Can't listen on {host}, .* Choose another --host"):
        check_port(host, free_port())


def test_an_unreachable_database_is_named_without_its_password() -> None:
    """Host, port, database and reason are there, and three ways out."""
    port = free_port()
    with pytest.raises(UpError) as caught:
        check_database(f"postgresql://me:hidden@127.0.0.1:{port}/tasks")
    assert str(caught.value) == (
        f"The database tasks on 127.0.0.1, port {port}, which DATABASE_URL names, can't be reached: "
        "Connection refused. Start it, correct DATABASE_URL, or unset it to use the embedded Postgres."
    )


def test_a_database_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version and the oldest that works are named."""

    class Old:
        info = SimpleNamespace(server_version=140_011)

        def __enter__(self) -> Old:
            return self

        def __exit__(self, *_: object) -> None: ...

    def connect(*_: Any, **__: Any) -> Old:
        return Old()

    monkeypatch.setattr(psycopg, "connect", connect)
    with pytest.raises(UpError, match="is Postgres 14; 15 or newer is needed"):
        check_database("postgresql://me:hidden@db/tasks")


def test_a_data_directory_has_one_up_at_a_time(tmp_path: Path) -> None:
    """The second is told about the first, and may come when that has gone."""
    with only_one(tmp_path / "data"):
        with pytest.raises(UpError, match=r"Another `manage.py up` \(pid \d+\) runs on .*data"):
            with only_one(tmp_path / "data"):
                pass
    with only_one(tmp_path / "data"):
        pass


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("LocalHost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.7", False),
        ("::ffff:10.0.0.7", False),
        ("localhost.", False),
        ("127.0.0.1.example.com", False),
        ("example.com", False),
    ],
)
def test_only_addresses_of_this_machine_alone_are_loopback(host: str, loopback: bool) -> None:
    """Anonymous use depends on it."""
    assert is_loopback(host) is loopback

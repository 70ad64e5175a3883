"""Settings from the environment: what they become, and what a wrong one says."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from asyncpoll import environment
from asyncpoll.private import kept_secret
from tests.places import newcomers_environment

PROJECT = Path(__file__).resolve().parents[2]
SHOW = """
import json, sys
from asyncpoll import settings
json.dump({name: getattr(settings, name) for name in dir(settings) if name.isupper()}, sys.stdout, default=str)
"""


def run(data_dir: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the project, configured by nothing but these variables."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=newcomers_environment(ASYNCPOLL_DATA_DIR=str(data_dir), **variables),
        capture_output=True,
        text=True,
        check=False,
    )


def settings(data_dir: Path, **variables: str) -> dict[str, Any]:
    """The settings that a process with these variables sees."""
    done = run(data_dir, "-c", SHOW, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_database_url_is_taken_apart() -> None:
    """Percent-encoding is undone, and what Django has no name for goes to libpq."""
    entry = environment.database("postgres://me:p%40ss@db.example:6543/tasks?sslmode=require")
    assert entry == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "tasks",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "6543",
        "CONN_MAX_AGE": 0,
        "OPTIONS": {"sslmode": "require"},
    }


def test_a_socket_directory_is_a_host() -> None:
    """As the embedded server's URL has it."""
    entry = environment.database("postgresql://me:x@/postgres?host=%2Ftmp%2Frun&port=5432")
    assert (entry["HOST"], entry["PORT"], entry["OPTIONS"]) == ("/tmp/run", "5432", {})


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://me:hidden@host/name", "not the URL of a Postgres database"),
        ("hidden", "not the URL of a Postgres database"),
        ("postgresql://me:hidden@host:port/name", "can't be read"),
        ("postgresql://me:hidden@host:65536/name", "can't be read"),
        ("postgresql://me:hidden@[::1/name", "can't be read"),
        ("postgresql://me:hi@dden@host/name", "can't be read"),
        ("postgresql://me:hidden@host/name?nonsense=1", "can't be read"),
        ("postgresql://me:hid%zzden@host/name", "can't be read"),
        ("postgresql://me:hidden@host", "names no database"),
    ],
)
def test_a_wrong_database_url_is_refused_with_the_remedy_and_without_its_password(
    url: str, says: str
) -> None:
    """Each message shows how to write one."""
    with pytest.raises(ImproperlyConfigured, match=says) as caught:
        environment.database(url)
    assert "write postgresql://user:password@host:5432/name" in str(caught.value)
    assert "hid" not in str(caught.value)
    assert "dden" not in str(caught.value)


def test_without_a_database_a_check_works_and_a_query_says_what_to_do(tmp_path: Path) -> None:
    """Settings load; connecting names DATABASE_URL."""
    query = "import django; django.setup(); from django.db import connection; connection.ensure_connection()"
    done = run(tmp_path, "-c", query, DJANGO_SETTINGS_MODULE="asyncpoll.settings")
    assert done.returncode == 1
    assert "DATABASE_URL is not set; set it or use manage.py" in done.stderr


def test_manage_py_reports_a_wrong_database_url_in_one_sentence(tmp_path: Path) -> None:
    """No traceback."""
    done = run(tmp_path, "manage.py", "migrate", DATABASE_URL="mysql://me:hidden@host/name")
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Postgres" in done.stderr


def test_a_secret_key_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    """Two processes see the same key, another data directory has another, only the owner can read it."""
    keys = {settings(tmp_path / "one")["SECRET_KEY"] for _ in range(2)}
    assert len(keys) == 1
    assert settings(tmp_path / "two")["SECRET_KEY"] not in keys
    assert stat.S_IMODE((tmp_path / "one" / "secret_key").stat().st_mode) == 0o600


def test_a_secret_key_from_the_environment_leaves_no_file(tmp_path: Path) -> None:
    """Nor a data directory."""
    assert settings(tmp_path / "none", DJANGO_SECRET_KEY="given")["SECRET_KEY"] == "given"
    assert not (tmp_path / "none").exists()


def test_a_key_that_cannot_be_kept_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    """A file is where the data directory should be."""
    (tmp_path / "taken").write_text("")
    done = run(tmp_path / "taken", "-c", SHOW)
    assert done.returncode == 1
    assert "set DJANGO_SECRET_KEY, or ASYNCPOLL_DATA_DIR" in done.stderr


def test_of_two_who_make_up_a_secret_both_get_the_first_ones(tmp_path: Path) -> None:
    """The slower one drops its own, also when the first came in between."""

    def slower() -> str:
        kept_secret(tmp_path / "secret", lambda: "first")
        return "second"

    assert kept_secret(tmp_path / "secret", slower) == "first"


def test_local_http_works_by_default(tmp_path: Path) -> None:
    """No redirect, no secure-only cookie, no debug page, no host but this machine, no anonymous use."""
    plain = settings(tmp_path)
    assert not plain["DEBUG"]
    assert not plain["SECURE_SSL_REDIRECT"]
    assert not plain["SESSION_COOKIE_SECURE"]
    assert plain["SECURE_PROXY_SSL_HEADER"] is None
    assert plain["ALLOWED_HOSTS"] == ["localhost", "127.0.0.1", "[::1]"]
    assert plain["ASYNCPOLL"]["ANONYMOUS"] is False


def test_one_variable_makes_a_deployment_secure(tmp_path: Path) -> None:
    """Everything that `check --deploy` asks for."""
    secure = settings(tmp_path, DJANGO_SECURE="1")
    assert secure["SECURE_SSL_REDIRECT"]
    assert secure["SECURE_HSTS_SECONDS"] == 31_536_000
    assert secure["SESSION_COOKIE_SECURE"]
    assert secure["CSRF_COOKIE_SECURE"]


def test_numbers_from_the_environment_reach_asyncpolls_settings(tmp_path: Path) -> None:
    """Whole ones stay whole."""
    variables = {"ASYNCPOLL_MAX_HOLD_SECONDS": "12.5", "ASYNCPOLL_MAX_HELD": "50"}
    ours = settings(tmp_path, **variables, ASYNCPOLL_ANONYMOUS="1")["ASYNCPOLL"]
    assert (ours["MAX_HOLD_SECONDS"], ours["MAX_HELD"], ours["ANONYMOUS"]) == (12.5, 50, True)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ASYNCPOLL_MAX_HELD", "many", "ASYNCPOLL_MAX_HELD is 'many'; it must be a number"),
        ("DJANGO_DEBUG", "maybe", "DJANGO_DEBUG is 'maybe'; it must be 1 or 0"),
        ("ASYNCPOLL_LOG_FORMAT", "xml", "ASYNCPOLL_LOG_FORMAT is 'xml'; it must be json or line"),
        ("ASYNCPOLL_LOG_LEVEL", "loud", "ASYNCPOLL_LOG_LEVEL is 'loud'; it must be one of DEBUG"),
    ],
)
def test_a_wrong_value_fails_at_start_with_the_rule(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    """The variable, its value and the rule are in the message."""
    done = run(tmp_path, "-c", SHOW, **{name: value})
    assert done.returncode == 1
    assert says in done.stderr


def test_redis_carries_the_wake_ups_if_it_is_named() -> None:
    """Otherwise each process listens for itself."""
    assert "InMemory" in environment.channel_layer("")["BACKEND"]
    layer = environment.channel_layer("redis://cache:6379/1")
    assert layer["BACKEND"] == "tasks_app.wakeup.redis.RedisLayer"
    assert layer["CONFIG"]["hosts"] == ["redis://cache:6379/1"]
    with pytest.raises(ImproperlyConfigured, match="rediss:// for TLS") as caught:
        environment.channel_layer("http://:hidden@cache")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("url", ["redis://:hid/den@host:6379", "redis://:hidden@host:65536"])
def test_a_redis_url_that_can_not_be_read_is_refused_without_its_password(url: str) -> None:
    """A slash in a password makes what stands before it a port."""
    with pytest.raises(ImproperlyConfigured, match="percent-encoded") as caught:
        environment.channel_layer(url)
    assert "hid" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_level_is_written_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is empty is not set."""
    monkeypatch.setenv("ASYNCPOLL_LOG_LEVEL", "debug")
    assert environment.level("ASYNCPOLL_LOG_LEVEL", "INFO") == "DEBUG"
    monkeypatch.setenv("ASYNCPOLL_LOG_LEVEL", "")
    assert environment.level("ASYNCPOLL_LOG_LEVEL", "INFO") == "INFO"


def test_a_flag_that_is_not_set_is_what_it_is_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most are off; a web process may relay unless told otherwise."""
    monkeypatch.delenv("ASYNCPOLL_BRIDGE", raising=False)
    assert environment.flag("ASYNCPOLL_BRIDGE", default=True)
    assert not environment.flag("ASYNCPOLL_BRIDGE")
    monkeypatch.setenv("ASYNCPOLL_BRIDGE", "0")
    assert not environment.flag("ASYNCPOLL_BRIDGE", default=True)

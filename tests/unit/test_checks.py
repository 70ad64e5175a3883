"""Every misconfiguration is named, with its remedy."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.core.checks import CheckMessage

from tasks_app import checks
from tests.holdsite import views

LAYER = {"BACKEND": "channels.layers.InMemoryChannelLayer"}


@pytest.fixture(autouse=True)
def good(settings: Any) -> Any:
    """Settings in which nothing is wrong."""
    settings.ASYNCPOLL = {}
    settings.CHANNEL_LAYERS = {"asyncpoll": LAYER}
    settings.ROOT_URLCONF = "tests.holdsite.urls"
    settings.ASGI_APPLICATION = f"{__name__}.lean"
    return settings


class _Lean:
    holds_without_threads = True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve nothing."""


def _wrapped_in_a_closure(inner: Any) -> Any:
    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        await inner(scope, receive, send)

    return middleware


class _Routes:
    def __init__(self, http: Any) -> None:
        self.application_mapping = {"http": http}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve nothing."""


lean = _Lean()
wrapped = _Routes(_wrapped_in_a_closure(lean))


async def plain(scope: Any, receive: Any, send: Any) -> None:
    """An application that is not ours."""


def _only(found: list[CheckMessage], identifier: str) -> CheckMessage:
    (message,) = found
    assert message.id == identifier
    assert message.hint
    return message


def _all() -> list[CheckMessage]:
    return [
        message
        for check in (
            checks.check_settings,
            checks.check_database,
            checks.check_channel_layer,
            checks.check_redis_layer,
            checks.check_installed_apps,
            checks.check_application,
            checks.check_anonymous,
            checks.check_webhook_hosts,
        )
        for message in check(None)
    ]


def test_good_settings_have_nothing_to_say_about_them() -> None:
    """No check cries without a reason."""
    assert _all() == []


def test_an_invalid_setting_is_reported_once_in_its_own_words(good: Any) -> None:
    """Checks that need the settings keep quiet about it."""
    good.ASYNCPOLL = {"MAX_HELD": 0}
    message = _only(_all(), "tasks_app.E001")
    assert message.msg == "ASYNCPOLL['MAX_HELD'] is 0; it must be greater than 0."


def test_each_invalid_setting_is_a_message_of_its_own(good: Any) -> None:
    """So that they are mended in one go."""
    good.ASYNCPOLL = {"MAX_HELD": 0, "PRUNE_BATCH": "all"}
    assert [(message.id, message.msg.split()[0]) for message in _all()] == [
        ("tasks_app.E001", "ASYNCPOLL['PRUNE_BATCH']"),
        ("tasks_app.E001", "ASYNCPOLL['MAX_HELD']"),
    ]


def test_a_database_that_is_missing_is_reported(good: Any) -> None:
    """By its alias."""
    good.ASYNCPOLL = {"DATABASE": "nowhere"}
    assert "'nowhere'" in _only(_all(), "tasks_app.E002").msg


def test_a_database_that_is_not_postgres_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SKIP LOCKED, LISTEN and the rest are Postgres's."""

    class _Sqlite:
        vendor = "sqlite"

    monkeypatch.setattr(checks, "connections", {"default": _Sqlite()})
    hint = str(_only(_all(), "tasks_app.E002").hint)
    assert "'django.db.backends.postgresql'" in hint


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        ({}, "is missing"),
        ({"asyncpoll": {"BACKEND": "no.such.Layer"}}, "can't be made"),
        ({"asyncpoll": {**LAYER, "CONFIG": {"nonsense": 1}}}, "can't be made"),
        ({"asyncpoll": {}}, "can't be made"),
    ],
)
def test_a_channel_layer_that_can_not_carry_wake_ups_is_reported(
    monkeypatch: pytest.MonkeyPatch, layers: dict[str, Any], reason: str
) -> None:
    """Missing, not importable, wrongly configured, without a backend."""
    from channels.layers import ChannelLayerManager

    monkeypatch.setattr(ChannelLayerManager, "configs", layers)
    message = _only(_all(), "tasks_app.E003")
    assert reason in message.msg
    assert "InMemoryChannelLayer" in str(message.hint)


def test_no_piece_of_a_redis_password_is_in_what_a_check_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slash in it makes what stands before it a port, which urllib quotes."""
    from channels.layers import ChannelLayerManager

    config = {"hosts": ["redis://:hid/den@host:6379"]}
    layers = {"asyncpoll": {"BACKEND": "tasks_app.wakeup.redis.RedisLayer", "CONFIG": config}}
    monkeypatch.setattr(ChannelLayerManager, "configs", layers)
    message = _only(_all(), "tasks_app.E003")
    assert "percent-encoded" in message.msg
    assert "hid" not in message.msg


def test_a_redis_layer_that_can_freeze_its_process_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the one that can't."""
    from channels.layers import ChannelLayerManager

    layers = {"asyncpoll": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}}
    monkeypatch.setattr(ChannelLayerManager, "configs", layers)
    assert "tasks_app.wakeup.redis.RedisLayer" in str(_only(_all(), "tasks_app.W003").hint)
    layers["asyncpoll"]["BACKEND"] = "tasks_app.wakeup.redis.RedisLayer"
    assert _all() == []


@pytest.mark.parametrize(("above", "found"), [(True, True), (False, False)])
def test_channels_above_us_is_reported(
    monkeypatch: pytest.MonkeyPatch, above: bool, found: bool
) -> None:
    """Its runworker would take the place of ours; below us it does no harm."""

    class _Config:
        def __init__(self, name: str) -> None:
            self.name = name

    names = ["channels", "tasks_app"] if above else ["tasks_app", "channels"]
    monkeypatch.setattr(apps, "get_app_configs", lambda: [_Config(name) for name in names])
    messages = checks.check_installed_apps(None)
    assert [message.id for message in messages] == (["tasks_app.E004"] if found else [])


def test_an_unwrapped_application_is_told_how_to_wrap(good: Any) -> None:
    """It works, at the cost of a thread for each held request."""
    good.ASGI_APPLICATION = f"{__name__}.plain"
    message = _only(_all(), "tasks_app.W001")
    assert "from tasks_app.serving.handler import get_asgi_application" in str(message.hint)


@pytest.mark.parametrize("name", ["lean", "wrapped"])
def test_our_handler_is_found_however_it_is_wrapped(good: Any, name: str) -> None:
    """In routes, in attributes, in the closures of middleware."""
    good.ASGI_APPLICATION = f"{__name__}.{name}"
    assert _all() == []


def test_a_project_without_our_urls_may_serve_as_it_likes(good: Any) -> None:
    """A worker alone serves nothing."""
    good.ASGI_APPLICATION = f"{__name__}.plain"
    good.ROOT_URLCONF = _NoUrls
    assert _all() == []


class _NoUrls:
    urlpatterns: list[Any] = []


@pytest.mark.parametrize("path", ["tests.holdsite.broken_asgi.application", "no.such.module", "x"])
def test_an_application_that_can_not_be_imported_is_reported(good: Any, path: str) -> None:
    """With what it failed of."""
    good.ASGI_APPLICATION = path
    assert repr(path) in _only(_all(), "tasks_app.E005").msg


def test_anonymous_use_is_reported_for_deployments(good: Any) -> None:
    """It is for development."""
    good.ASYNCPOLL = {"ANONYMOUS": True}
    _only(_all(), "tasks_app.W002")


def test_hosts_for_tests_are_refused_for_deployments(good: Any) -> None:
    """Who may submit a task could have the server talk to its own network."""
    good.ASYNCPOLL = {"WEBHOOK_TEST_HOSTS": ["localhost"]}
    found = _only(_all(), "tasks_app.E006")
    assert "localhost" in found.msg
    assert found.is_serious()


def test_the_views_of_the_small_project_are_mounted() -> None:
    """Or the tests above would prove nothing."""
    assert checks.get_resolver().resolve("/api/hold").func is views.hold

"""System checks: each names what is wrong with the settings, and the remedy."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from channels.layers import channel_layers
from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.urls import get_resolver
from django.utils.connection import ConnectionDoesNotExist
from django.utils.module_loading import import_string

from tasks_app import conf
from tasks_app.errors import ConfigurationError

_AppConfigs = Sequence[AppConfig] | None
# An application may be wrapped in other middleware, and that again. Whoever isn't found by then is not looked for.
_MOST_LAYERS = 200


def _conf() -> conf.Conf | None:
    try:
        return conf.current()
    except ConfigurationError:
        return None


@register
def check_settings(app_configs: _AppConfigs, **kwargs: Any) -> list[CheckMessage]:
    """`settings.ASYNCPOLL` is valid."""
    if wrong := conf.wrong_values(getattr(settings, "ASYNCPOLL", {})):
        return [_wrong(what) for what in wrong]
    path = conf.current().AUTHENTICATE
    try:
        if isinstance(path, str) and path and not callable(import_string(path)):
            return [_wrong(f"ASYNCPOLL['AUTHENTICATE'] is {path!r}, which is not callable.")]
    except ImportError as error:
        return [_wrong(f"ASYNCPOLL['AUTHENTICATE'] is {path!r}, which can't be imported: {error}.")]
    return []


def _wrong(what: str) -> Error:
    return Error(what, hint="Correct the value in settings.ASYNCPOLL.", id="tasks_app.E001")


@register
def check_database(app_configs: _AppConfigs, **kwargs: Any) -> list[CheckMessage]:
    """The database of the tasks is Postgres. It is not connected to."""
    wanted = _conf()
    if wanted is None or _is_postgres(wanted.DATABASE):
        return []
    return [
        Error(
            f"ASYNCPOLL['DATABASE'] is {wanted.DATABASE!r}, and DATABASES has no Postgres database of that name.",
            hint=(
                f"Set DATABASES[{wanted.DATABASE!r}]['ENGINE'] to 'django.db.backends.postgresql', "
                "or ASYNCPOLL['DATABASE'] to the alias of a database that has it."
            ),
            id="tasks_app.E002",
        )
    ]


def _is_postgres(alias: str) -> bool:
    try:
        return connections[alias].vendor == "postgresql"
    except ConnectionDoesNotExist:
        return False


@register
def check_channel_layer(app_configs: _AppConfigs, **kwargs: Any) -> list[CheckMessage]:
    """The channel layer that carries wake-ups can be made. It is not connected to."""
    wanted = _conf()
    if wanted is None:
        return []
    alias = wanted.CHANNEL_LAYER
    if alias not in channel_layers.configs:
        reason = "is missing"
    elif (error := _layer_error(alias)) is not None:
        reason = f"can't be made: {_without_password(error)}"
    else:
        return []
    return [
        Error(
            f"CHANNEL_LAYERS[{alias!r}], which carries wake-ups, {reason}.",
            hint=(
                f"Set CHANNEL_LAYERS = {{{alias!r}: {{'BACKEND': 'channels.layers.InMemoryChannelLayer'}}}}: "
                "each web process then listens to the database for itself."
            ),
            id="tasks_app.E003",
        )
    ]


def _layer_error(alias: str) -> Exception | None:
    try:
        channel_layers.make_backend(alias)
    except Exception as error:
        # A layer may raise anything while it is made.
        return error
    return None


def _without_password(error: Exception) -> str:
    if str(error).startswith("Port could not be cast"):
        # It quotes what stands where the port is looked for: a piece of a password with a slash in it.
        return "a URL in its CONFIG can't be read; write redis://:password@host:6379, with special characters percent-encoded"
    return str(error)


@register
def check_redis_layer(app_configs: _AppConfigs, **kwargs: Any) -> list[CheckMessage]:
    """A Redis layer that carries wake-ups can't freeze its process."""
    wanted = _conf()
    if wanted is None:
        return []
    backend = str(channel_layers.configs.get(wanted.CHANNEL_LAYER, {}).get("BACKEND", ""))
    if not backend.startswith("channels_redis.pubsub."):
        return []
    return [
        Warning(
            f"CHANNEL_LAYERS[{wanted.CHANNEL_LAYER!r}] is {backend}, whose connections freeze the whole process when the "
            "network between it and Redis swallows packets for 45 s.",
            hint="Set its BACKEND to 'tasks_app.wakeup.redis.RedisLayer', which takes the same CONFIG.",
            id="tasks_app.W003",
        )
    ]


@register
def check_installed_apps(app_configs: _AppConfigs, **kwargs: Any) -> list[CheckMessage]:
    """`manage.py runworker` is ours."""
    names = [config.name for config in apps.get_app_configs()]
    if "channels" not in names or names.index("channels") > names.index("tasks_app"):
        return []
    return [
        Error(
            "INSTALLED_APPS lists 'channels' above 'tasks_app', so that its runworker command takes the place of ours.",
            hint="Remove 'channels', which channel layers don't need, or list it below 'tasks_app'.",
            id="tasks_app.E004",
        )
    ]


@register(Tags.urls)
def check_application(app_configs: _AppConfigs, **kwargs: Any) -> list[CheckMessage]:
    """Where our urls are mounted, ASGI_APPLICATION serves them without a thread for each held request."""
    path = getattr(settings, "ASGI_APPLICATION", None)
    if not path or "asyncpoll" not in get_resolver().app_dict or _conf() is None:
        return []
    try:
        application = import_string(path)
    except Exception as error:
        # A module may raise anything while it is imported.
        return [
            Error(
                f"ASGI_APPLICATION is {path!r}, which can't be imported: {error}",
                hint="Name the application of your asgi.py, for example 'mysite.asgi.application'.",
                id="tasks_app.E005",
            )
        ]
    if any(getattr(layer, "holds_without_threads", False) for layer in _layers(application)):
        return []
    return [
        Warning(
            f"ASGI_APPLICATION ({path!r}) serves held requests through Django's own handler, which keeps an operating "
            "system thread for each.",
            hint=(
                "In your asgi.py: from tasks_app.serving.handler import get_asgi_application; "
                "application = get_asgi_application()"
            ),
            id="tasks_app.W001",
        )
    ]


def _layers(application: Any) -> Iterator[Any]:
    """`application` and what it is wrapped around: in attributes, in dictionaries of routes, in closures."""
    seen: dict[int, Any] = {}
    ahead = deque([application])
    while ahead and len(seen) < _MOST_LAYERS:
        layer = ahead.popleft()
        if callable(layer) and not isinstance(layer, type) and id(layer) not in seen:
            seen[id(layer)] = layer
            ahead.extend(_inside(layer))
    yield from seen.values()


def _inside(layer: Any) -> Iterator[Any]:
    for value in getattr(layer, "__dict__", {}).values():
        yield from value.values() if isinstance(value, dict) else (value,)
    if inspect.isfunction(layer):
        yield from inspect.getclosurevars(layer).nonlocals.values()


@register(Tags.security, deploy=True)
def check_anonymous(app_configs: _AppConfigs, **kwargs: Any) -> list[CheckMessage]:
    """Nobody may use a deployment without credentials."""
    wanted = _conf()
    if wanted is None or not wanted.ANONYMOUS:
        return []
    return [
        Warning(
            "ASYNCPOLL['ANONYMOUS'] is on: who can reach this server through a loopback address needs no token.",
            hint="Set ASYNCPOLL['ANONYMOUS'] to False in every deployment.",
            id="tasks_app.W002",
        )
    ]


@register(Tags.security, deploy=True)
def check_webhook_hosts(app_configs: _AppConfigs, **kwargs: Any) -> list[CheckMessage]:
    """Nobody may have a deployment send requests to its own network."""
    wanted = _conf()
    if wanted is None or not wanted.WEBHOOK_TEST_HOSTS:
        return []
    return [
        Error(
            f"ASYNCPOLL['WEBHOOK_TEST_HOSTS'] is {list(wanted.WEBHOOK_TEST_HOSTS)!r}: who may submit a task can have this "
            "server send requests to them, wherever they are.",
            hint="Leave WEBHOOK_TEST_HOSTS out of every deployment.",
            id="tasks_app.E006",
        )
    ]

"""One frozen, validated view of `settings.ASYNCPOLL`. Wrong values fail at start, with the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from tasks_app.errors import ConfigurationError
from tasks_app.limits import SECONDS_RULE, are_seconds


@dataclass(frozen=True, slots=True)
class Conf:
    """Settings of asyncpoll. Durations are seconds, sizes are bytes."""

    DATABASE: str = "default"
    """Alias in DATABASES of the database that holds the tasks."""
    LISTEN_DATABASE_URL: str = ""
    """Connection for LISTEN when DATABASES goes through a transaction pooler; empty: the same database."""
    CHANNEL_LAYER: str = "asyncpoll"
    """Alias in CHANNEL_LAYERS that carries wake-ups."""
    BRIDGE: bool = True
    """May a web process be the one that relays wake-ups through a shared layer? False where `runbridge` runs."""
    TASK_MODULES: tuple[str, ...] = ()
    """Modules that declare tasks, besides each installed app's `tasks`."""

    MAX_HOLD_SECONDS: float = 25.0
    """Longest hold; under the 29–30 s after which API Gateway, Heroku and most balancers cut a request."""
    MAX_HELD: int = 10_000
    """Requests held at once by one process; beyond it holds are shed."""
    MAX_HELD_PER_OWNER: int = 2_000
    """The same for one owner."""
    MAX_LAG_SECONDS: float = 1.0
    """How late an event loop may be for some seconds on end; beyond it holds are shed, before it drowns."""
    MAX_BODY_BYTES: int = 1_048_576
    """Largest request body accepted."""
    MAX_UPLOAD_BYTES: int = 67_108_864
    """Largest request body that `serve` accepts for everything but the API: the admin, a project's own pages."""
    MAX_RESULT_BYTES: int = 1_048_576
    """Largest result stored; a larger one fails its task with the reason."""
    MAX_EVENTS: int = 1_000
    """Milestones kept per task."""
    MAX_SHORT_POLLS_PER_SECOND: int = 5
    """Immediate answers a second for one task and caller before 429."""

    ANONYMOUS: bool = False
    """Development only: requests without credentials, from a loopback Host, act as one owner."""
    AUTHENTICATE: str | Callable[..., Any] = ""
    """`callable(request) -> Identity | None`, or its dotted path: maps a project's requests to owners. Never blocks."""
    CORS_ORIGINS: tuple[str, ...] = ()
    """Origins of pages that may call the API, exactly as browsers send them: "https://app.example.org"."""
    TRUSTED_PROXIES: tuple[str, ...] = ()
    """Addresses or networks of the gateways whose X-Forwarded-For is believed; nobody's if empty."""
    TICKET_SECONDS: float = 86_400.0
    """How long a poll ticket may be used."""

    LEASE_SECONDS: float = 15.0
    """How long a worker may be silent before its task is taken for dead."""
    HEARTBEAT_SECONDS: float = 5.0
    """How often a worker extends its leases; well under a third of LEASE_SECONDS."""
    WORKER_POLL_SECONDS: float = 1.0
    """Longest a worker sleeps without looking for work; covers a lost notification."""
    DEFAULT_TIMEOUT_SECONDS: float = 600.0
    """Time limit of an attempt whose task declares none."""
    DEFAULT_MAX_ATTEMPTS: int = 3
    """Attempts of a task that declares none."""
    RETRY_BASE_SECONDS: float = 1.0
    """First retry delay; doubles with each failure, full jitter."""
    RETRY_MAX_SECONDS: float = 600.0
    """Longest retry delay."""

    WEBHOOKS: bool = True
    """May the end of a task be told to a webhook? Whoever asks needs a secret: `manage.py createwebhooksecret`."""
    WEBHOOK_CONCURRENCY: int = 32
    """Webhooks that one process sends at once; half of them of one owner, an eighth to one host."""
    WEBHOOK_RETRY_SECONDS: float = 86_400.0
    """How long a webhook that is not taken is tried again."""
    WEBHOOK_TEST_HOSTS: tuple[str, ...] = ()
    """Development only: hosts that webhooks may be sent to although their addresses are not public, "localhost"."""
    INBOX_DAYS: float = 90.0
    """How long an inbox entry is kept that nobody acknowledges; 0: for ever. Acknowledged ones as tasks are."""

    MAX_RUNNING_PER_QUEUE: Mapping[str, int] = field(default_factory=dict)
    """How many tasks of a queue may run at once, by its name, over all workers; a queue not named has no limit."""
    MAX_RUNNING_PER_OWNER: int = 0
    """How many tasks of one owner may run at once, over all queues and workers; 0: no limit."""

    RETENTION_DAYS: float = 30.0
    """How long tasks that have ended are kept, with their history; 0: for ever."""
    PRUNE_BATCH: int = 1_000
    """Tasks that one transaction deletes."""

    @property
    def limits_running(self) -> bool:
        """True when some limit says how many tasks may run at once."""
        return bool(self.MAX_RUNNING_PER_QUEUE or self.MAX_RUNNING_PER_OWNER)


_ORIGIN = re.compile(
    r"(?:https://(?!.*:443$)|http://(?!.*:80$))(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?"
)
_Rule = tuple[Callable[[Any], bool], str]
_POSITIVE: _Rule = (lambda value: value > 0, "must be greater than 0")
_WEEK: _Rule = (
    lambda value: 0 < value <= 604_800,
    "must be more than 0 and at most 604800 seconds (a week)",
)
_SECONDS: _Rule = (are_seconds, SECONDS_RULE)
_RULES: Mapping[str, _Rule] = {
    "MAX_HOLD_SECONDS": (lambda value: 0 < value <= 3600, "must be between 0 and 3600 seconds"),
    "MAX_HELD": _POSITIVE,
    "MAX_HELD_PER_OWNER": _POSITIVE,
    "MAX_LAG_SECONDS": (
        lambda value: 0 < value <= 60,
        "must be more than 0 and at most 60 seconds",
    ),
    "MAX_BODY_BYTES": _POSITIVE,
    "MAX_UPLOAD_BYTES": _POSITIVE,
    "MAX_RESULT_BYTES": _POSITIVE,
    "MAX_EVENTS": (lambda value: value >= 10, "must be 10 or more"),
    "MAX_SHORT_POLLS_PER_SECOND": _POSITIVE,
    "CORS_ORIGINS": (
        lambda value: all(_ORIGIN.fullmatch(origin) for origin in value),
        "must list origins as browsers send them: scheme, name in lower case, and a port that is not the scheme's own, "
        "for example 'https://app.example.org'; no path, no trailing slash, no wildcard",
    ),
    "TICKET_SECONDS": (
        lambda value: 0 < value <= 31_622_400,
        "must be between 0 and 31622400 seconds (a year)",
    ),
    "LEASE_SECONDS": (lambda value: 1 <= value <= 3600, "must be between 1 and 3600 seconds"),
    "HEARTBEAT_SECONDS": _SECONDS,
    "WORKER_POLL_SECONDS": _SECONDS,
    "DEFAULT_TIMEOUT_SECONDS": _SECONDS,
    "DEFAULT_MAX_ATTEMPTS": (lambda value: 1 <= value <= 100, "must be between 1 and 100"),
    "RETRY_BASE_SECONDS": _WEEK,
    "RETRY_MAX_SECONDS": _WEEK,
    "WEBHOOK_CONCURRENCY": (lambda value: 1 <= value <= 1_000, "must be between 1 and 1000"),
    "WEBHOOK_RETRY_SECONDS": (
        lambda value: 0 <= value <= 2_592_000,
        "must be between 0, which tries once, and 2592000 seconds (30 days)",
    ),
    "WEBHOOK_TEST_HOSTS": (
        lambda value: all(host and host == host.lower() and "/" not in host for host in value),
        "must list names or addresses in lower case, without a scheme, a port or brackets, for example 'localhost'",
    ),
    "INBOX_DAYS": (
        lambda value: 0 <= value <= 36_500,
        "must be between 0, which keeps everything, and 36500 days (a century)",
    ),
    "MAX_RUNNING_PER_QUEUE": (
        lambda value: all(most > 0 for most in value.values()),
        "must give each queue a limit greater than 0, or leave the queue out",
    ),
    "MAX_RUNNING_PER_OWNER": (lambda value: value >= 0, "must be 0, which sets no limit, or more"),
    "RETENTION_DAYS": (
        lambda value: 0 <= value <= 36_500,
        "must be between 0, which keeps everything, and 36500 days (a century)",
    ),
    "PRUNE_BATCH": (lambda value: 1 <= value <= 100_000, "must be between 1 and 100000"),
}


_KINDS: Mapping[type, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list of texts",
    dict: "a dictionary of whole numbers",
}


def parse(values: Mapping[str, Any]) -> Conf:
    """Validate `values` (as in `settings.ASYNCPOLL`). Raises ConfigurationError naming value, rule and remedy, with a
    line for each value that is wrong."""
    conf, wrong = _checked(values)
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return conf


def wrong_values(values: Mapping[str, Any]) -> list[str]:
    """What `parse` would say, a sentence for each value; empty where it takes them all."""
    return _checked(values)[1]


def _checked(values: Mapping[str, Any]) -> tuple[Conf, list[str]]:
    """What is of the right kind, with defaults for the rest; and what is wrong."""
    if not isinstance(values, Mapping):
        return Conf(), [
            f"ASYNCPOLL is {values!r}; it must be a dictionary of settings, for example {{'MAX_HOLD_SECONDS': 25.0}}."
        ]
    defaults = asdict(Conf())
    fitting: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, value in values.items():
        if name not in defaults:
            known = ", ".join(sorted(defaults))
            wrong[name] = f"ASYNCPOLL[{name!r}] is not a setting; remove it or use one of {known}."
            continue
        try:
            fitting[name] = _coerce(name, value, defaults[name])
        except ConfigurationError as error:
            wrong[name] = str(error)
    conf = Conf(**fitting)
    wrong |= _broken_rules(conf)
    # Of two that have to go together the other one may be what is meant.
    if not wrong.keys() & {"HEARTBEAT_SECONDS", "LEASE_SECONDS"}:
        wrong |= _broken_heartbeat(conf)
    return conf, [*wrong.values()]


def _broken_rules(conf: Conf) -> dict[str, str]:
    return {
        name: f"ASYNCPOLL[{name!r}] is {getattr(conf, name)!r}; it {rule}."
        for name, (holds, rule) in _RULES.items()
        if not holds(getattr(conf, name))
    }


def _broken_heartbeat(conf: Conf) -> dict[str, str]:
    if conf.HEARTBEAT_SECONDS * 2 <= conf.LEASE_SECONDS:
        return {}
    return {
        "HEARTBEAT_SECONDS": (
            f"ASYNCPOLL['HEARTBEAT_SECONDS'] is {conf.HEARTBEAT_SECONDS!r}; a lease of {conf.LEASE_SECONDS} s must "
            "outlive a missed heartbeat, so set it to at most half of LEASE_SECONDS."
        )
    }


def _coerce(name: str, value: Any, default: Any) -> Any:
    if name == "AUTHENTICATE" and callable(value):
        return value
    if isinstance(default, bool) or isinstance(value, bool):
        fits = isinstance(value, bool) and isinstance(default, bool)
    elif isinstance(default, float):
        fits = isinstance(value, int | float)
        # A whole number may be too large for it, which its rule will say.
        with suppress(OverflowError):
            value = float(value) if fits else value
    elif isinstance(default, tuple):
        fits = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        value = tuple(value) if fits else value
    elif isinstance(default, Mapping):
        fits = isinstance(value, Mapping) and all(
            isinstance(name, str) and type(number) is int for name, number in value.items()
        )
        value, default = dict(value) if fits else value, {"reports": 4}
    else:
        fits = isinstance(value, type(default))
    if not fits:
        raise ConfigurationError(
            f"ASYNCPOLL[{name!r}] is {value!r}; it must be {_KINDS[type(default)]}, for example {default!r}."
        )
    return value


@lru_cache(maxsize=1)
def current() -> Conf:
    """The validated settings of this process."""
    return parse(getattr(settings, "ASYNCPOLL", {}))


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "ASYNCPOLL":
        current.cache_clear()


setting_changed.connect(_forget)

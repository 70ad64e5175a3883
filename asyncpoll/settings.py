"""Django settings, all of them from the environment.

DATABASE_URL            postgresql://user:password@host:5432/name, Postgres 15 or newer. manage.py starts or joins
                        an embedded server when it is not set.
LISTEN_DATABASE_URL     the same database past a transaction pooler, if DATABASE_URL goes through one
CHANNEL_REDIS_URL       redis://host:6379, rediss:// or unix://: one web process listens to the database and relays
                        to all; else each listens for itself
DJANGO_SECRET_KEY       else one is made up and kept in the data directory
DJANGO_ALLOWED_HOSTS    comma-separated; localhost and its addresses if not set
DJANGO_SECURE           1 for every deployment: HTTPS only, secure cookies, HSTS. It expects a proxy that ends TLS and
                        sets X-Forwarded-Proto itself, discarding what the client sent. Off, plain local HTTP works.
DJANGO_DEBUG            1 for Django's debug pages; never with DJANGO_SECURE
ASYNCPOLL_DATA_DIR      where secrets and the embedded server are kept; .asyncpoll next to manage.py if not set
ASYNCPOLL_LOG_LEVEL     INFO if not set
ASYNCPOLL_LOG_FORMAT    json or line; if not set, lines at a terminal and JSON elsewhere
ASYNCPOLL_ANONYMOUS     1 for use without tokens from this machine; development only
ASYNCPOLL_BRIDGE        0 for web processes that leave the relaying to manage.py runbridge
ASYNCPOLL_CORS_ORIGINS  comma-separated origins of pages that may call the API; none if not set
ASYNCPOLL_TRUSTED_PROXIES
                        comma-separated addresses and networks of your gateways; nobody's X-Forwarded-For is believed
                        if not set
ASYNCPOLL_WEBHOOKS      0 for a server that sends no webhooks
ASYNCPOLL_WEBHOOK_TEST_HOSTS
                        comma-separated hosts that webhooks may be sent to although they are not public; development
                        only
ASYNCPOLL_MAX_HOLD_SECONDS, ASYNCPOLL_MAX_HELD, ASYNCPOLL_MAX_HELD_PER_OWNER, ASYNCPOLL_LEASE_SECONDS,
ASYNCPOLL_HEARTBEAT_SECONDS, ASYNCPOLL_WORKER_POLL_SECONDS
                        instead of the defaults in `tasks_app.conf.Conf`
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from asyncpoll import environment
from asyncpoll.private import data_dir, kept_secret, make_data_dir

BASE_DIR = Path(__file__).resolve().parents[1]
DATA_DIR = data_dir()


def _secret_key() -> str:
    try:
        return kept_secret(make_data_dir(DATA_DIR) / "secret_key", get_random_secret_key)
    except OSError as error:
        raise ImproperlyConfigured(
            f"DJANGO_SECRET_KEY is not set, and no key can be kept in {DATA_DIR} ({error.strerror}): "
            "set DJANGO_SECRET_KEY, or ASYNCPOLL_DATA_DIR to a directory that can be written."
        ) from error


DEBUG = environment.flag("DJANGO_DEBUG")
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or _secret_key()
ALLOWED_HOSTS = environment.words("DJANGO_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")

INSTALLED_APPS = [
    "daphne",  # before staticfiles: its runserver serves ASGI
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "tasks_app",  # without "channels", whose runworker would shadow ours and which channel layers don't need
]
MIDDLEWARE = [
    "asyncpoll.middleware.SecurityHeaders",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "asyncpoll.urls"
ASGI_APPLICATION = "asyncpoll.asgi.application"

DATABASES = {"default": environment.database(os.environ.get("DATABASE_URL", ""))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CHANNEL_LAYERS = {"asyncpoll": environment.channel_layer(os.environ.get("CHANNEL_REDIS_URL", ""))}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
# The admin looks right without collectstatic, so there is nothing to warn of if that never ran.
WHITENOISE_USE_FINDERS = True
warnings.filterwarnings("ignore", message="No directory at: .*static", category=UserWarning)

SECURE = environment.flag("DJANGO_SECURE")
SESSION_COOKIE_SECURE = SECURE
CSRF_COOKIE_SECURE = SECURE
SECURE_SSL_REDIRECT = SECURE
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # a balancer asks these over plain HTTP
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SECURE else None
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE
SECURE_HSTS_PRELOAD = SECURE
X_FRAME_OPTIONS = "DENY"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "tasks_app.observers.lines.formatter",
            "kind": environment.choice("ASYNCPOLL_LOG_FORMAT", "json", "line"),
        }
    },
    "filters": {"strangers": {"()": "tasks_app.observers.strangers.StrangersRequests"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["strangers"],
        },
    },
    "root": {
        "handlers": ["stderr"],
        "level": environment.level("ASYNCPOLL_LOG_LEVEL", "INFO"),
    },
    # Django's own set-up would add a second line while DEBUG is on, and mail to nobody.
    "loggers": {
        "django": {"handlers": [], "level": "INFO"},
    },
}

ASYNCPOLL: dict[str, Any] = {
    **environment.numbers(
        "MAX_HOLD_SECONDS",
        "MAX_HELD",
        "MAX_HELD_PER_OWNER",
        "LEASE_SECONDS",
        "HEARTBEAT_SECONDS",
        "WORKER_POLL_SECONDS",
    ),
    "ANONYMOUS": environment.flag("ASYNCPOLL_ANONYMOUS"),
    "BRIDGE": environment.flag("ASYNCPOLL_BRIDGE", default=True),
    "CORS_ORIGINS": environment.words("ASYNCPOLL_CORS_ORIGINS", ""),
    "LISTEN_DATABASE_URL": os.environ.get("LISTEN_DATABASE_URL", ""),
    "TASK_MODULES": ["asyncpoll.demo"],
    "TRUSTED_PROXIES": environment.words("ASYNCPOLL_TRUSTED_PROXIES", ""),
    "WEBHOOKS": environment.flag("ASYNCPOLL_WEBHOOKS", default=True),
    "WEBHOOK_TEST_HOSTS": environment.words("ASYNCPOLL_WEBHOOK_TEST_HOSTS", ""),
}

"""Settings of the small project. Its database is never asked."""

import os

SECRET_KEY = "only for tests, and long enough for a server that others can reach"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["tasks_app"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
ROOT_URLCONF = "tests.holdsite.urls"
ASGI_APPLICATION = os.environ.get("HOLDSITE_APPLICATION", "tests.holdsite.asgi.application")
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "never asked"}}
CHANNEL_LAYERS = {"asyncpoll": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
USE_TZ = True
SILENCED_SYSTEM_CHECKS = ["tasks_app.E005"]  # tests break the application on purpose
ASYNCPOLL = {
    "MAX_BODY_BYTES": 100_000,
    "TRUSTED_PROXIES": os.environ.get("HOLDSITE_TRUSTED_PROXIES", "").split(),
    "MAX_HELD": int(os.environ.get("HOLDSITE_MAX_HELD", "1000")),
}

"""The ASGI application: `asyncpoll.asgi:application`, for daphne, uvicorn, granian and others."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "asyncpoll.settings")

from asyncpoll.embedded import ensure_database_url

ensure_database_url()  # before the settings are read

from tasks_app.serving.handler import get_asgi_application  # noqa: E402

application = get_asgi_application()

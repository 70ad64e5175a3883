"""The small project as an ASGI application."""

import os

import django

from tasks_app.serving.handler import AsyncpollHandler
from tasks_app.serving.wiring import Wiring
from tests.holdsite.holds import holds

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.holdsite.settings")
django.setup(set_prefix=False)


async def _nothing() -> None:
    """Nothing to start or stop."""


application = AsyncpollHandler(Wiring(drain=holds, start=_nothing, stop=_nothing))

"""The settings that asyncpoll comes with, a route more, and a task to submit."""

from asyncpoll.settings import *  # noqa: F403 (all of them)
from asyncpoll.settings import ASYNCPOLL as _ASYNCPOLL

ROOT_URLCONF = "bench.fleet.site.urls"
ASYNCPOLL = {**_ASYNCPOLL, "TASK_MODULES": [*_ASYNCPOLL["TASK_MODULES"], "bench.fleet.site.tasks"]}

"""The settings that asyncpoll comes with, and a task that does nothing."""

from asyncpoll.settings import *  # noqa: F403 (all of them)
from asyncpoll.settings import ASYNCPOLL as _DEFAULTS

ASYNCPOLL = {**_DEFAULTS, "TASK_MODULES": ["bench.worker.site.work"]}

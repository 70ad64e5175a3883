"""The settings of tests, with a schedule."""

from tests.settings import *  # noqa: F403
from tests.settings import ASYNCPOLL as _ASYNCPOLL

ASYNCPOLL = {
    **_ASYNCPOLL,
    "TASK_MODULES": [*_ASYNCPOLL["TASK_MODULES"], "tests.scheduled_tasks"],
}

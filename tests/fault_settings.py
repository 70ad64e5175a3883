"""The settings of tests, with tasks that meet faults, and with rescues that do not wait long."""

from tests.settings import *  # noqa: F403
from tests.settings import ASYNCPOLL as _ASYNCPOLL

ASYNCPOLL = {
    **_ASYNCPOLL,
    "TASK_MODULES": [*_ASYNCPOLL["TASK_MODULES"], "tests.fault_tasks"],
    "RETRY_BASE_SECONDS": 0.1,
    "RETRY_MAX_SECONDS": 1.0,
}

"""The settings of tests, for a program that asks for whatever the API's description allows: with a token, and no patience."""

from tests.settings import *  # noqa: F403
from tests.settings import ASYNCPOLL as _ASYNCPOLL

ASYNCPOLL = {
    **_ASYNCPOLL,
    "TASK_MODULES": [*_ASYNCPOLL["TASK_MODULES"], "tests.described_tasks"],
    "ANONYMOUS": False,
    "MAX_HOLD_SECONDS": 0.05,
    "MAX_SHORT_POLLS_PER_SECOND": 1_000_000,
}

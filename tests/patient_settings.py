"""The settings of tests, for servers that are not to turn anybody away because the machine is busy."""

from tests.settings import *  # noqa: F403
from tests.settings import ASYNCPOLL as _ASYNCPOLL

ASYNCPOLL = {**_ASYNCPOLL, "MAX_LAG_SECONDS": 60}

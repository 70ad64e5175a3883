"""`python -m asyncpoll` is `asyncpoll`."""

import sys

from asyncpoll.cli.exits import Exit

try:
    from asyncpoll.cli.main import run
except ModuleNotFoundError as error:
    if error.name != "httpx":
        raise
    print("asyncpoll: httpx is missing; pip install . in the checkout brings it.", file=sys.stderr)
    sys.exit(Exit.USAGE)

run()

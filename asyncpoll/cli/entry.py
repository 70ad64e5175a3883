"""Where the command begins."""

from __future__ import annotations

import sys
from typing import NoReturn

from asyncpoll import streams
from asyncpoll.cli import interrupts
from asyncpoll.cli.exits import Exit


def run() -> NoReturn:
    """The console script."""
    interrupts.hear()
    streams.lose_what_stderr_cannot_take()
    try:
        # Not before: it takes a while, and Ctrl-C in it would be a traceback.
        from asyncpoll.cli.main import main
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        print(
            "asyncpoll: httpx is missing; pip install . in the checkout brings it.", file=sys.stderr
        )
        sys.exit(Exit.USAGE)
    sys.exit(main(sys.argv[1:]))

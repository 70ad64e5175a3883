"""`python -m asyncpoll` is `asyncpoll`."""

from asyncpoll.cli.entry import run

run()

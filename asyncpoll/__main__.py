"""`python -m asyncpoll` is `asyncpoll`."""

from asyncpoll.cli.main import run

run()

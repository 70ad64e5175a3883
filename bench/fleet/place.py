"""A fleet to measure: its database, what is between its processes, and the role by which its statements are told."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.broker import broker
from bench.crowd import Running
from bench.database import Databases
from bench.errors import BenchError
from bench.fleet.figures import Size
from bench.project import holding, manage
from bench.server import Server, free_port
from bench.tasks import StoredTasks

POSTGRES_SETTINGS = {"shared_preload_libraries": "pg_stat_statements"}
LAYERS = ("memory", "redis")

_SETTINGS = "bench.fleet.site.settings"

# The kernel gives each connection to any of the processes; none should be missed.
_LOOKS_PER_PROCESS = 12


class WebProcesses(Server):
    """`manage.py serve --processes N`."""

    def __init__(self, processes: int, environment: Mapping[str, str]) -> None:
        port = free_port()
        command = manage("serve", "--port", str(port), "--processes", str(processes))
        super().__init__(command, environment, port)
        self._looks = _LOOKS_PER_PROCESS * processes

    def _is_ready(self) -> bool:
        return all(super(WebProcesses, self)._is_ready() for _ in range(self._looks))


@dataclass(frozen=True, slots=True)
class Fleet:
    """Web processes that are up."""

    size: Size
    running: Running
    tasks: StoredTasks
    database_url: str
    web_role: str
    redis_url: str
    """Empty where nothing is between them."""


@contextmanager
def fleet(databases: Databases, size: Size, most_held: int) -> Iterator[Fleet]:
    """Web processes of this size on a fresh database, killed at the end. Raises BenchError."""
    with databases.fresh() as url, _layer(size) as redis_url, _role(url) as (role, web_url):
        environment = {**holding(web_url, most_held, _SETTINGS), "CHANNEL_REDIS_URL": redis_url}
        with (
            WebProcesses(size.processes, environment) as server,
            closing(StoredTasks(url)) as tasks,
        ):
            yield Fleet(size, Running(server, tasks), tasks, url, role, redis_url)


@contextmanager
def _layer(size: Size) -> Iterator[str]:
    if size.layer == "memory":
        yield ""
        return
    with broker() as url:
        yield url


@contextmanager
def _role(url: str) -> Iterator[tuple[str, str]]:
    """A role that may do what ours may, and the URL with which to be it."""
    role, password = f"bench_web_{secrets.token_hex(4)}", secrets.token_hex(16)
    make = sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}")
    with psycopg.connect(url, autocommit=True) as connection:
        try:
            connection.execute(make.format(sql.Identifier(role), sql.Literal(password)))
        except psycopg.errors.InsufficientPrivilege as error:
            raise BenchError(
                "The role of DATABASE_URL may make no other; unset it, or name a superuser."
            ) from error
        try:
            where = urlsplit(url)
            host = where.netloc.rpartition("@")[2]
            yield role, where._replace(netloc=f"{role}:{password}@{host}").geturl()
        finally:
            _drop(connection, role)


def _drop(connection: psycopg.Connection, role: str) -> None:
    name = sql.Identifier(role)
    connection.execute(sql.SQL("DROP OWNED BY {}").format(name))
    connection.execute(sql.SQL("DROP ROLE {}").format(name))

"""Counts what the web processes asked of Postgres and of Redis. The counting is theirs, not ours."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from bench.errors import BenchError

# Upkeep begins with WITH; what clients have read, and what is read again for them, with SELECT.
_TOTAL = """
SELECT coalesce(sum(calls), 0)::int,
       coalesce(sum(calls) FILTER (WHERE query LIKE 'SELECT%%FROM tasks_app_task%%'), 0)::int
FROM pg_stat_statements WHERE userid = (SELECT oid FROM pg_roles WHERE rolname = %s)
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """Counters that only grow: statements of the role, those that read tasks, Redis commands."""

    statements: int
    reads: int
    commands: int


class Counters:
    """Of one fleet, until `close()`."""

    def __init__(self, database_url: str, web_role: str, redis_url: str) -> None:
        self._role = web_role
        self._connection = psycopg.connect(database_url, autocommit=True)
        try:
            self._connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            self._connection.execute("SELECT FROM pg_stat_statements LIMIT 1")
        except psycopg.Error as error:
            self._connection.close()
            raise BenchError(
                f"Statements can't be counted ({error}); unset DATABASE_URL, or load pg_stat_statements there."
            ) from error
        self._redis = _redis(redis_url) if redis_url else None

    def read(self) -> Asked:
        """As they are now."""
        row = self._connection.execute(_TOTAL, [self._role]).fetchone()
        assert row is not None
        return Asked(*row, self._commands())

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        if self._redis is not None:
            self._redis.close()

    def _commands(self) -> int:
        if self._redis is None:
            return 0
        told = self._redis.info("commandstats")
        return sum(stats["calls"] for name, stats in told.items() if name != "cmdstat_info")


def _redis(url: str):  # type: ignore[no-untyped-def]
    import redis

    return redis.Redis.from_url(url)

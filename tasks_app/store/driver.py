"""Runs a Call on Django's own connection, inside the caller's transaction where there is one."""

from __future__ import annotations

from typing import TypeVar

from django.db import connections

from tasks_app import conf
from tasks_app.store.call import Call

T = TypeVar("T")


def run(call: Call[T], using: str | None = None) -> T:
    """Execute `call` synchronously on the database alias `using` (default: the one the settings name)."""
    with connections[using or conf.current().DATABASE].cursor() as cursor:
        cursor.execute(call.sql, dict(call.params))
        rows = cursor.fetchall() if cursor.description else []
    return call.shape(rows)

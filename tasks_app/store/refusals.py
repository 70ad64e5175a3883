"""What the database's refusals mean for whoever sent a statement."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from tasks_app import conf
from tasks_app.errors import RowLocked, StoreUnavailable, Unmigrated

MISSING: Final = (errors.UndefinedTable, errors.UndefinedColumn)
# A standby that took over, a role that may not: somebody else's to mend, after which the same request goes well.
_NOT_ALLOWED: Final = (errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege)
_AWAY: Final = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)
_DEFAULT = "default"


def explain(error: Exception) -> StoreUnavailable | None:
    """What to raise instead where the database is away, busy, or not as it should be; None: it is the statement's fault."""
    if isinstance(error, MISSING):
        return Unmigrated(
            f"The database {conf.current().DATABASE!r} is not as this process found it at its start: "
            f"{error.diag.message_primary}; {remedy()}."
        )
    if isinstance(error, errors.LockNotAvailable):
        return RowLocked(
            "Another transaction has locked what this request would change; try again once it has ended."
        )
    if isinstance(error, _NOT_ALLOWED):
        return StoreUnavailable(
            f"The database does not let this process do that ({type(error).__name__}: {error}); its account needs to read "
            "and write the tables of tasks_app, on a server that is no standby."
        )
    if isinstance(error, _AWAY):
        return StoreUnavailable(
            f"The database did not answer ({type(error).__name__}: {error}); try again."
        )
    return None


def remedy() -> str:
    """What to do about missing tables."""
    alias = conf.current().DATABASE
    return f"run manage.py migrate{'' if alias == _DEFAULT else f' --database {alias}'}"

"""What a command that needs the database says in one sentence when it can't be had."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError
from django.db import OperationalError

from tasks_app.errors import ConfigurationError
from tasks_app.store.migrated import refuse_unmigrated


@contextmanager
def database_needed() -> Iterator[None]:
    """Within it, a database that is away or not migrated, and a wrong setting, are a CommandError."""
    try:
        refuse_unmigrated("command")
        yield
    except ConfigurationError as error:
        raise CommandError(str(error)) from error
    except OperationalError as error:
        reason = str(error).strip().partition("\n")[0]
        raise CommandError(f"The database can't be reached: {reason}. Try again.") from error

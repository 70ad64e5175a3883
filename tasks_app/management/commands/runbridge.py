"""`manage.py runbridge`: relay wake-ups apart from the web processes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tasks_app.errors import ConfigurationError
from tasks_app.observers import logs
from tasks_app.wakeup.relay import relay


class Command(BaseCommand):
    """Parses arguments, of which it has none."""

    help = (
        "Relay commits to web processes over a shared channel layer. Several may run: one relays, the others stand by. "
        "Set ASYNCPOLL_BRIDGE=0 for the web processes to leave it to these."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until a signal; exit code 1 and one sentence if it can't."""
        logs.install()
        logs.ensure_shown()
        try:
            relay()
        except ConfigurationError as error:
            raise CommandError(str(error)) from error

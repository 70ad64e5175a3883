"""`manage.py runbridge`: relay wake-ups apart from the web processes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tasks_app.errors import ConfigurationError
from tasks_app.management.watching import add_metrics_port, watch_bridge
from tasks_app.observers import logs
from tasks_app.wakeup.relay import relay


class Command(BaseCommand):
    """Parses the arguments of `runbridge`."""

    help = (
        "Relay commits to web processes over a shared channel layer. Several may run: one relays, the others stand by. "
        "Set ASYNCPOLL['BRIDGE'] to False (asyncpoll's own settings: ASYNCPOLL_BRIDGE=0) for the web processes to leave "
        "it to these."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        add_metrics_port(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until a signal; exit code 1 and one sentence if it can't."""
        logs.install()
        logs.ensure_shown()
        try:
            relay(lambda service: watch_bridge(options["metrics_port"], service))
        except ConfigurationError as error:
            raise CommandError(str(error)) from error

"""manage.py up: database, web and workers in one go, for development."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from asyncpoll.development import Options, up
from asyncpoll.preflight import UpError, refuse_other_settings
from asyncpoll.private import data_dir


class Command(BaseCommand):
    """Parses the arguments of `up`."""

    help = "Try out asyncpoll; not for projects of your own. Starts everything: Postgres (unless DATABASE_URL is set), web, workers."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on (%(default)s)"
        )
        parser.add_argument(
            "--port", type=_port, default=8000, help="port to listen on (%(default)s)"
        )
        parser.add_argument(
            "--data-dir", type=Path, default=data_dir(), help="where data is kept (%(default)s)"
        )
        parser.add_argument(
            "--web",
            type=_at_least(1),
            default=1,
            help="web processes (%(default)s); several share wake-ups through Valkey",
        )
        parser.add_argument(
            "--workers", type=_at_least(0), default=1, help="worker processes (%(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until Ctrl-C; exit code 1 and one sentence if it can't start."""
        chosen = Options(
            host=options["host"],
            port=options["port"],
            data_dir=options["data_dir"].absolute(),
            web=options["web"],
            workers=options["workers"],
        )
        try:
            refuse_other_settings()
            up(chosen, self._show)
        except UpError as error:
            sys.exit(str(error))

    def _show(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() else 0
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; choose one from 1 to 65535")
    return port


def _at_least(least: int) -> Any:
    def number(text: str) -> int:
        value = int(text) if text.isdecimal() else least - 1
        if value < least:
            raise argparse.ArgumentTypeError(
                f"{text} is too few, or no number; give {least} or more"
            )
        return value

    return number

"""manage.py serve: the web process, or several."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tasks_app.errors import ConfigurationError
from tasks_app.observers import logs
from tasks_app.serving.run import serve, serve_child, serve_socket


class Command(BaseCommand):
    """Parses the arguments of `serve`."""

    help = "Serve the project over HTTP, and drain on SIGTERM so that no client sees a reset."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on (%(default)s)"
        )
        parser.add_argument(
            "--port",
            type=_number_between(0, 65_535),
            default=8000,
            help="port to listen on, 0 for any free one (%(default)s)",
        )
        parser.add_argument(
            "--processes",
            type=_number_between(1, 256),
            default=1,
            help="processes that share the port (%(default)s)",
        )
        parser.add_argument(
            "--fd",
            type=_number_between(0, 2**31 - 1),
            help="listen on this inherited socket instead of --host and --port",
        )
        parser.add_argument("--leash", type=int, help=argparse.SUPPRESS)
        parser.add_argument("--siblings", help=argparse.SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until SIGTERM or Ctrl-C; exit code 1 and one sentence if it can't start."""
        self._is_silent = options["verbosity"] == 0
        logs.install()
        logs.ensure_shown()
        try:
            if options["leash"] is not None:
                serve_child(options["fd"], options["leash"], options["siblings"])
            elif options["fd"] is not None:
                serve_socket(options["fd"], self._say)
            else:
                serve(options["host"], options["port"], options["processes"], self._say)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error

    def _say(self, line: str) -> None:
        if not self._is_silent:
            self.stdout.write(line)
            self.stdout.flush()


def _number_between(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
        return int(text)

    return number

"""`manage.py createtoken`: a token for a client, shown once."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tasks_app.errors import InvalidScope
from tasks_app.management.ages import seconds
from tasks_app.management.names import name
from tasks_app.management.refusals import database_needed
from tasks_app.store import make_token
from tasks_app.store.driver import run
from tasks_app.tokens import issue

_NEVER = "never"
# A century; the database's own calendar ends later.
_LONGEST_SECONDS = 36_525 * 86_400.0


class Command(BaseCommand):
    """Parses arguments and nothing else."""

    help = "Make an API token. It is printed once, on a line of its own, and can't be had again: only its digest is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--owner",
            type=name,
            required=True,
            help='whose tasks it submits and sees; "" for those that were enqueued without an owner',
        )
        parser.add_argument(
            "--scopes",
            default="submit,read,cancel",
            help="comma-separated, of submit, read, cancel, notify (ask to be told of ends, and the inbox), metrics "
            "(GET /metrics) and claim:QUEUE (%(default)s)",
        )
        parser.add_argument(
            "--expires",
            type=_lifetime,
            default="90d",
            metavar="SPAN",
            help="days, or a number with d, h, m or s, or never (%(default)s)",
        )
        parser.add_argument("--label", type=name, default="", help="what it is for")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it, print it alone to stdout, and say the rest on stderr."""
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        if not scopes:
            raise CommandError(
                "A token without scopes is good for nothing; name some with --scopes."
            )
        try:
            issued = issue(options["owner"], scopes, options["expires"], options["label"])
        except InvalidScope as error:
            raise CommandError(str(error)) from error
        with database_needed():
            expires_at = run(make_token(issued.new))
        self.stdout.write(issued.text)
        until = "for ever" if expires_at is None else f"until {expires_at:%Y-%m-%d %H:%M} UTC"
        self.stderr.write(
            f"Token {issued.new.id} of {issued.new.owner!r} for {', '.join(issued.new.scopes)}, {until}. It is not shown "
            f"again; manage.py revoketoken {issued.new.id} ends it."
        )


def _lifetime(text: str) -> float | None:
    if text == _NEVER:
        return None
    lifetime = seconds(text)
    if not 0 < lifetime <= _LONGEST_SECONDS:
        raise ArgumentTypeError(
            f"{text!r} is not more than 0 and at most a century; or write never"
        )
    return lifetime

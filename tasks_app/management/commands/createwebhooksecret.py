"""manage.py createwebhooksecret: a new secret that an owner's webhooks are signed with."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tasks_app.management.names import name
from tasks_app.management.refusals import database_needed
from tasks_app.store import keep_webhook_secret
from tasks_app.store.deliveries import OVERLAP_SECONDS
from tasks_app.store.driver import run
from tasks_app.webhooks.signing import make_secret

_HOURS = int(OVERLAP_SECONDS // 3600)


class Command(BaseCommand):
    """Parses arguments and nothing else."""

    help = (
        "Make the secret that an owner's webhooks are signed with. It is printed once, alone on stdout, for whoever "
        "receives them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--owner",
            type=name,
            required=True,
            help='whose webhooks; "" for tasks that were enqueued without an owner',
        )
        parser.add_argument(
            "--rotate",
            action="store_true",
            help=f"replace the one there is, which goes on signing beside the new one for {_HOURS} hours",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it; exit code 1 if there is one that is not to be replaced."""
        owner, replace = options["owner"], options["rotate"]
        with database_needed():
            text, kept = make_secret(owner)
            if not run(keep_webhook_secret(owner, kept, replace=replace)):
                raise CommandError(
                    f"{owner!r} has a secret, which can't be shown again; make another with --rotate."
                )
        self.stderr.write(f"Webhooks of {owner!r} are signed with:")
        self.stdout.write(text)

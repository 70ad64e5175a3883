"""`manage.py revoketoken`: end a token everywhere."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tasks_app.management.refusals import database_needed
from tasks_app.store import find_tokens, revoke_token
from tasks_app.store.driver import run
from tasks_app.tokens import id_of


class Command(BaseCommand):
    """Parses arguments and nothing else."""

    help = (
        "Revoke an API token. Every process refuses it within two seconds; a request that is held with it is refused "
        "when it wakes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "token", help="its id, with or without ap_; a whole token is taken, too"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke it; exit code 1 if there is none."""
        with database_needed():
            self._revoke(id_of(options["token"]))

    def _revoke(self, token_id: str | None) -> None:
        if token_id is None or not (found := run(find_tokens([token_id]))):
            raise CommandError(
                "There is no such token; the admin lists all of them, and createtoken printed the id."
            )
        if run(revoke_token(token_id)):
            self.stdout.write(f"Revoked token {token_id} of {found[token_id].owner!r}.")
        else:
            self.stdout.write(f"Token {token_id} had been revoked before.")

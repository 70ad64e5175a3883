"""The verbs of the secrets that webhooks are signed with."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app.store.call import Call


@dataclass(frozen=True, slots=True)
class KeptSecret:
    """What is stored of a secret: its salt, and what tells whether it came out right."""

    salt: bytes
    proof: bytes


def find_webhook_secret(owner: str) -> Call[KeptSecret | None]:
    """The secret of `owner`, if there is one."""
    return Call(
        "find_webhook_secret",
        {"owner": owner},
        lambda rows: KeptSecret(bytes(rows[0][0]), bytes(rows[0][1])) if rows else None,
    )


def keep_webhook_secret(owner: str, secret: KeptSecret, *, replace: bool) -> Call[bool]:
    """Keep a secret. False: there is one, which was not to be replaced."""
    return Call(
        "keep_webhook_secret",
        {"owner": owner, "salt": secret.salt, "proof": secret.proof, "replace": replace},
        bool,
    )

"""Brings a database up to date and gives development an admin. `up` runs it in a process that has the settings."""

from __future__ import annotations

import json
import secrets

from django.contrib.auth import get_user_model
from django.core.management import call_command

from asyncpoll.private import data_dir, kept_secret

ADMIN = "admin"


def prepare() -> None:
    """Migrate, make the admin if there is none, and print as the last line what `up` may show as its password."""
    call_command("migrate", interactive=False)
    print(json.dumps({"admin_password": _admin_password()}))


def _admin_password() -> str | None:
    """The password of the admin, None if the user was there before us or has another password by now."""
    users = get_user_model().objects
    kept = data_dir() / "admin.password"
    admin = users.filter(username=ADMIN).first()
    if admin is None:
        password = kept_secret(kept, lambda: secrets.token_urlsafe(12))
        users.create_superuser(ADMIN, password=password)
        return password
    if not kept.exists():
        return None
    password = kept.read_text(encoding="utf-8").strip()
    return password if admin.check_password(password) else None

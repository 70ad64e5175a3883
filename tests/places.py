"""Surroundings for processes that a test starts: directories and environments."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def reachable_directory() -> Iterator[Path]:
    """A new directory that any account may get to, unlike pytest's; gone afterwards."""
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


def newcomers_environment(**variables: str) -> dict[str, str]:
    """This process's environment without anything that configures us, and with `variables`."""
    ours = ("DATABASE_URL", "LISTEN_DATABASE_URL", "CHANNEL_REDIS_URL", "DJANGO_", "ASYNCPOLL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, **variables}

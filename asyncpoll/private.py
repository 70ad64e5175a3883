"""Files and directories that only their owner may read: secrets that are made up once and kept."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def data_dir() -> Path:
    """Where this project keeps its data: ASYNCPOLL_DATA_DIR, or `.asyncpoll` next to manage.py."""
    chosen = os.environ.get("ASYNCPOLL_DATA_DIR")
    return Path(chosen).absolute() if chosen else Path(__file__).resolve().parents[1] / ".asyncpoll"


def make_data_dir(path: Path) -> Path:
    """Create the data directory `path` unless it exists; a directory that is there already stays as it is.

    Root's may be entered, though not listed, by the account that runs Postgres for root.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(0o711 if os.geteuid() == 0 else 0o700)
    return path


def kept_secret(path: Path, make: Callable[[], str]) -> str:
    """Return what the file `path` holds; whoever asks first writes `make()` there, readable by its owner only.

    Callers that race all get the same secret, and none of them half of it. Raises OSError.
    """
    if not path.exists():
        _publish(path, make())
    return path.read_text(encoding="utf-8").strip()


def _publish(path: Path, secret: str) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".new-") as new:
        new.write(secret + "\n")
        new.flush()
        os.fsync(new.fileno())
        # A link, unlike a rename, never replaces the secret of whoever was faster.
        try:
            os.link(new.name, path)
        except FileExistsError:
            return

"""Where a data directory's cluster lives: inside it, or, if its account can't go there, in a place of root's.

The latter is how a data directory below /root works although Postgres runs as another user: a random name under
/var/lib/asyncpoll/clusters, noted in the data directory. Without the note (the data directory was deleted) nobody
looks for that cluster again.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from asyncpoll.embedded import binaries
from asyncpoll.embedded.account import Account
from asyncpoll.embedded.errors import EmbeddedError
from asyncpoll.private import kept_secret

_INSIDE = "postgres"
_NOTE = "postgres.elsewhere"
_CLUSTERS = "clusters"


def find_home(data_dir: Path) -> Path | None:
    """The home of the cluster that belongs to `data_dir`, None if it has none yet. Raises EmbeddedError."""
    if (data_dir / _INSIDE).is_dir():
        return data_dir / _INSIDE
    note = data_dir / _NOTE
    if not note.exists():
        return None
    # Only a name is believed, never a path: the note may be writable by others than root.
    name = Path(note.read_text(encoding="utf-8").strip()).name
    for root in binaries.STATE_ROOTS:
        if name and (root / _CLUSTERS / name).is_dir():
            return root / _CLUSTERS / name
    raise EmbeddedError(
        f"The Postgres cluster {name!r} that {note} names is no longer under "
        f"{' or '.join(str(root) for root in binaries.STATE_ROOTS)}: bring it back, or delete {data_dir} to start anew."
    )


def make_home(data_dir: Path, account: Account, programs: Path) -> Path:
    """Make an empty home for a new cluster that `account` runs with `programs`. Raises EmbeddedError, OSError."""
    if not account.borrowed or account.may_enter(data_dir):
        return _make_private(data_dir / _INSIDE, account)
    root = next(root for root in binaries.STATE_ROOTS if root in programs.parents)
    clusters = binaries.own_directory(root / _CLUSTERS)
    name = secrets.token_hex(8)
    home = _make_private(clusters / name, account)
    kept_secret(data_dir / _NOTE, lambda: name)
    return home


def _make_private(directory: Path, account: Account) -> Path:
    directory.mkdir(mode=0o700)
    if account.borrowed:
        os.chown(directory, account.uid, account.gid, follow_symlinks=False)
    return directory

"""Postgres from a wheel, for a run with no DATABASE_URL.

Several processes may share one server: whoever comes first starts it, whoever leaves last stops it. A server whose
starter was killed goes on, and the next one joins it. The kernel keeps the count, as shared locks on a file.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from asyncpoll.embedded.account import account_for
from asyncpoll.embedded.binaries import installed, usable_by
from asyncpoll.embedded.cluster import Cluster
from asyncpoll.embedded.errors import EmbeddedError
from asyncpoll.embedded.home import find_home, make_home
from asyncpoll.embedded.locks import FileLock
from asyncpoll.leash import Leash
from asyncpoll.private import data_dir as default_data_dir
from asyncpoll.private import kept_secret, make_data_dir

__all__ = ["EmbeddedError", "Server", "ensure_database_url", "installed", "join", "temporary"]

# For servers that nobody will miss: what is committed may be lost with the machine.
_CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Server:
    """This process's share in the Postgres server of a data directory, until `leave()`. A context manager."""

    def __init__(self, data_dir: Path) -> None:
        self.url = ""
        self._joined_by = os.getpid()
        self._turn = FileLock(data_dir / "postgres.turn")
        self._users = FileLock(data_dir / "postgres.users")
        try:
            with self._turn:
                self._users.share()
                self._cluster, password = _cluster_of(data_dir)
                server = self._cluster.until_ready() or self._cluster.start()
                self._socket_dir = server.socket_dir
                self.url = self._cluster.url(server, password)
        except BaseException:
            # An interrupt as well: a lock that is kept would keep others waiting.
            self._close()
            raise

    def revive(self) -> bool:
        """Start the server again, at the same `url`, if it has died under us; True if so. Raises EmbeddedError."""
        if self._cluster.running() is not None:
            return False
        with self._turn:
            if self._cluster.until_ready() is not None:
                return False
            self._cluster.start(self._socket_dir)
            return True

    def leave(self) -> None:
        """Give the share up; the last one to leave stops the server. Raises EmbeddedError if it won't stop."""
        if (
            not self.url or os.getpid() != self._joined_by
        ):  # left already, or a fork's copy of its parent's share
            return
        self.url = ""
        try:
            with self._turn:
                if self._users.try_claim():
                    self._cluster.stop()
        finally:
            self._close()

    def _close(self) -> None:
        self._users.close()
        self._turn.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()


def join(data_dir: Path) -> Server:
    """Join the server of `data_dir`, starting it, or making its cluster, if need be. Raises EmbeddedError."""
    installed()
    try:
        return Server(make_data_dir(data_dir.absolute()).resolve())
    except OSError as error:
        raise EmbeddedError(
            f"The embedded Postgres can't use {data_dir}: {error}. If that belongs to "
            "another user, run as that one; or choose another data directory, or set DATABASE_URL."
        ) from error


@contextlib.contextmanager
def temporary(**settings: str) -> Iterator[str]:
    """Yield the DATABASE_URL of a new server that is gone afterwards, also if this process is killed.

    Made for tests: fast, and not durable. `settings` are more of Postgres' own. Raises EmbeddedError.
    """
    installed()
    with tempfile.TemporaryDirectory(prefix="asyncpoll-", ignore_cleanup_errors=True) as name:
        directory = Path(name).resolve()
        directory.chmod(0o711)  # ours; as root, another account must get to what is inside
        cluster, password = _cluster_of(directory, "--no-sync")
        leash = Leash()
        try:
            server = cluster.start(None, **_CARELESS, **settings)
            leash.hold(server.pid)
            yield cluster.url(server, password)
            cluster.stop()
            leash.release(server.pid)
        finally:
            leash.close()
            shutil.rmtree(cluster.home, ignore_errors=True)


def ensure_database_url() -> str:
    """Return DATABASE_URL; if there is none, join the project's own server until this process exits and set it.

    Raises EmbeddedError.
    """
    if not os.environ.get("DATABASE_URL"):
        server = join(default_data_dir())
        atexit.register(server.leave)
        os.environ["DATABASE_URL"] = server.url
    return os.environ["DATABASE_URL"]


def _cluster_of(data_dir: Path, *initdb_options: str) -> tuple[Cluster, str]:
    home = find_home(data_dir)
    account = account_for(home)
    programs = usable_by(account)
    if home is None:
        home = make_home(data_dir, account, programs)
    cluster = Cluster(home, account, programs, log=data_dir / "postgres.log")
    password = kept_secret(data_dir / "postgres.password", lambda: secrets.token_urlsafe(24))
    if not cluster.exists:
        cluster.make(password, *initdb_options)
    return cluster, password

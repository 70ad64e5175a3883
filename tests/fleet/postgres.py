"""A Postgres server of a test's own, that can be restarted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from asyncpoll.embedded import _CARELESS, _cluster_of
from asyncpoll.embedded.cluster import Cluster
from asyncpoll.leash import Leash
from tests.places import reachable_directory

ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Postgres:
    """The server, migrated, and how to reach it."""

    cluster: Cluster
    url: str
    _leash: Leash

    @property
    def socket(self) -> str:
        """The path of its Unix socket."""
        return f"{parse_qs(urlsplit(self.url).query)['host'][0]}/.s.PGSQL.5432"

    def url_through(self, port: int) -> str:
        """The URL for a proxy on a loopback port."""
        parts = urlsplit(self.url)
        password = parts.password or ""
        return f"postgresql://{parts.username}:{password}@127.0.0.1:{port}{parts.path}"

    @property
    def password(self) -> str:
        """As it is, not percent-encoded."""
        return unquote(urlsplit(self.url).password or "")

    def restart(self) -> None:
        """Stop it as an administrator would, and start it again."""
        self.cluster.stop()
        self._leash.hold(self.cluster.start(**_CARELESS).pid)


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A migrated server, gone afterwards."""
    leash = Leash()
    with reachable_directory() as directory:
        cluster, password = _cluster_of(directory, "--no-sync")
        server = cluster.start(**_CARELESS)
        leash.hold(server.pid)
        url = cluster.url(server, password)
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "asyncpoll.settings"},
            check=True,
        )
        try:
            yield Postgres(cluster, url, leash)
        finally:
            cluster.stop()
            leash.close()

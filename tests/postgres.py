"""A Postgres server of a test's own, which it can stop, crash and start again."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil

from asyncpoll import embedded
from asyncpoll.embedded.cluster import PORT, Cluster
from asyncpoll.leash import Leash
from tests.places import reachable_directory

# What is committed outlives the server, though not the machine.
_SETTINGS = {"fsync": "off", "full_page_writes": "off"}


class Postgres:
    """Runs once `start` was called; `url` stays the same."""

    def __init__(self, directory: Path, leash: Leash) -> None:
        self._cluster, self._password = embedded._cluster_of(directory, "--no-sync")
        self._leash = leash
        self._pid = 0
        self.url = ""

    @property
    def cluster(self) -> Cluster:
        """The files, and how to stop it in good order."""
        return self._cluster

    @property
    def socket(self) -> str:
        """The path of its Unix socket."""
        return f"{parse_qs(urlsplit(self.url).query)['host'][0]}/.s.PGSQL.{PORT}"

    def url_through(self, port: int, url: str = "") -> str:
        """The URL of its database (or of the one that `url` names) for a proxy to `socket` on a loopback port."""
        parts = urlsplit(url or self.url)
        where = f"{parts.username}:{parts.password}@127.0.0.1:{port}"
        return parts._replace(netloc=where, query="").geturl()

    def start(self) -> None:
        """Start, recover what was committed, and return when it takes connections."""
        server = self._cluster.start(**_SETTINGS)
        self._pid = server.pid
        self._leash.hold(server.pid)
        self.url = self._cluster.url(server, self._password)

    def restart(self) -> None:
        """Stop it as an administrator would, and start it again."""
        self._cluster.stop()
        self._leash.release(self._pid)
        self.start()

    def crash(self) -> None:
        """Stop in immediate mode: every connection is cut, nothing is tidied up."""
        os.kill(self._pid, signal.SIGQUIT)
        psutil.Process(self._pid).wait(20)
        self._leash.release(self._pid)

    def stay_away(self, seconds: float) -> None:
        """Crash, and start again after so long."""
        self.crash()
        time.sleep(seconds)
        self.start()


@contextmanager
def own_postgres() -> Iterator[Postgres]:
    """A server that runs, and is gone afterwards."""
    with reachable_directory() as directory:
        leash = Leash()
        server = Postgres(directory, leash)
        try:
            server.start()
            yield server
            server.cluster.stop()
        finally:
            leash.close()
            shutil.rmtree(server.cluster.home, ignore_errors=True)

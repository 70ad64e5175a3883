"""One Postgres cluster on disk: made once, started, recognised when it runs already, stopped.

Its home is a directory that only the account it runs as may enter:

    data/   what initdb made        run/    the socket
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from asyncpoll.embedded.account import Account
from asyncpoll.embedded.errors import EmbeddedError

ROLE = "asyncpoll"
DATABASE = "postgres"
PORT = 5432  # only part of the socket's name
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
# Recovery after a crash replays what was written since the last checkpoint, minutes at most.
_START_SECONDS = 120.0
_LOOK_EVERY_SECONDS = 0.02
_PROC = Path("/proc")  # not on macOS, where Postgres alone decides about an old pid
# A socket's path may have 107 bytes (103 on macOS), of which ".s.PGSQL.5432.lock" takes 18.
_LONGEST_SOCKET_DIR = 84
_ELSEWHERE = "asyncpoll-socket-"
# In steps that only the account itself takes, so that root never writes into another's directory. A half-made
# cluster never gets the name "data".
_MAKE = """
set -eu
umask 077
rm -rf data.new
mkdir -p run
trap 'rm -f password' EXIT
cat > password
"$@" --pwfile=password --pgdata=data.new
mv data.new data
"""


@dataclass(frozen=True, slots=True)
class Postmaster:
    """A server that runs, as its postmaster.pid describes it."""

    pid: int
    socket_dir: Path
    status: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, the account that owns it, the programs for it, and where its server writes its log."""

    home: Path
    account: Account
    binaries: Path
    log: Path

    @property
    def data(self) -> Path:
        """The directory that initdb makes."""
        return self.home / "data"

    @property
    def _pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    @property
    def exists(self) -> bool:
        """True once the cluster was made completely."""
        return self.data.is_dir()

    def make(self, password: str, *options: str) -> None:
        """Create the cluster, owned by `ROLE` with `password`. Raises EmbeddedError."""
        self.account.run(
            "/bin/sh",
            "-c",
            _MAKE,
            "initdb",
            self.binaries / "initdb",
            f"--username={ROLE}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            *options,
            stdin=password,
            cwd=self.home,
        )

    def running(self) -> Postmaster | None:
        """The server of this cluster if one listens, though it may not be ready yet."""
        found = self._postmaster()
        return found if found is not None and _listens(found.socket_dir) else None

    def start(self, socket_dir: Path | None = None, **settings: str) -> Postmaster:
        """Start the server and wait until it is ready; durable unless `settings` say otherwise.

        Raises EmbeddedError with what the server logged.
        """
        self._disown_dead_postmaster()
        _reap()
        options = [f"--{name}={value}" for name, value in {**SETTINGS, **settings}.items()]
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            told = os.fstat(log).st_size
            server = self.account.start(
                self.binaries / "postgres",
                "-D",
                self.data,
                "-k",
                socket_dir or self._socket_dir(),
                *options,
                output=log,
            )
        finally:
            os.close(log)
        _STARTED[server.pid] = server
        try:
            return self._until_ready(server, told)
        except BaseException:
            # Nobody else knows of this server yet.
            server.send_signal(signal.SIGINT)
            raise

    def until_ready(self) -> Postmaster | None:
        """Wait for a server that another process started; None if it stops instead. Raises EmbeddedError."""
        deadline = time.monotonic() + _START_SECONDS
        while (found := self.running()) is not None and found.status != "ready":
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"The Postgres server {found.pid} of {self.home} has been {found.status} for "
                    f"{_START_SECONDS:.0f} s; see {self.log}."
                )
            time.sleep(_LOOK_EVERY_SECONDS)
        return found

    def stop(self, patience_seconds: int = 2) -> None:
        """Stop the server. Whatever takes longer than `patience_seconds` is cut off; nothing committed is lost.

        Raises EmbeddedError if it still runs then.
        """
        found = self._postmaster()
        if found is None:
            return
        try:
            self._stop("fast", patience_seconds)
        except EmbeddedError:
            self._stop("immediate", patience_seconds)
        if (server := _STARTED.pop(found.pid, None)) is not None:
            server.wait(patience_seconds)
        if found.socket_dir.name.startswith(_ELSEWHERE):
            with contextlib.suppress(FileNotFoundError):  # whoever tidies /tmp may have been faster
                found.socket_dir.rmdir()

    def url(self, server: Postmaster, password: str) -> str:
        """The DATABASE_URL of `server`."""
        host = quote(str(server.socket_dir), safe="")
        return f"postgresql://{ROLE}:{quote(password, safe='')}@/{DATABASE}?host={host}&port={PORT}"

    def _stop(self, mode: str, seconds: int) -> None:
        if self.running() is None:
            return
        self.account.run(
            self.binaries / "pg_ctl", "stop", "-D", self.data, "-m", mode, "-t", str(seconds), "-w"
        )

    def _until_ready(self, server: subprocess.Popen[bytes], told: int) -> Postmaster:
        deadline = time.monotonic() + _START_SECONDS
        while server.poll() is None and time.monotonic() < deadline:
            found = self._postmaster()
            if found is not None and found.pid == server.pid and found.status == "ready":
                return found
            time.sleep(_LOOK_EVERY_SECONDS)
        raise EmbeddedError(
            f"The embedded Postgres did not start: {self._complaint(told)} "
            f"(the whole log: {self.log}). Or set DATABASE_URL to use a Postgres of your own."
        )

    def _complaint(self, told: int) -> str:
        with self.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(told)
            said = log.read().strip()
        # The last fatal message, with the DETAIL and HINT that follow it.
        fatal = re.split(r"(?:FATAL|PANIC):\s+", said)[-1] or "it said nothing"
        return " ".join(
            re.sub(r"^.* (?:DETAIL|HINT|LOG):\s+", "", line) for line in fatal.splitlines()
        )

    def _postmaster(self) -> Postmaster | None:
        try:
            lines = self._pid_file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None
        # It may still be being written, or was when the machine went down.
        if len(lines) < 8 or not lines[0].isdigit():
            return None
        return Postmaster(int(lines[0]), Path(lines[4]), lines[7].strip())

    def _disown_dead_postmaster(self) -> None:
        # Postgres refuses to start while the process in postmaster.pid exists. After a power loss that may be anybody,
        # and in a container whose init reaps nobody it is a zombie. Our own pid there, the new server's parent, is
        # ignored; the rest of the file still guards against backends that outlived their postmaster.
        found = self._postmaster()
        if found is None or not _PROC.exists() or self._is_postmaster(found.pid):
            return
        _, _, rest = self._pid_file.read_text(encoding="utf-8").partition("\n")
        self.account.run(
            "/bin/sh", "-c", 'cat > "$1"', "sh", self._pid_file, stdin=f"{os.getpid()}\n{rest}"
        )

    def _is_postmaster(self, pid: int) -> bool:
        try:
            works_in = (_PROC / str(pid) / "cwd").readlink()
        except FileNotFoundError:
            return False
        except PermissionError:
            return True
        return works_in == self.data.resolve()

    def _socket_dir(self) -> Path:
        wanted = self.home / "run"
        # A comma separates directories, for the server as for its clients.
        if len(os.fsencode(wanted)) <= _LONGEST_SOCKET_DIR and not set(',"') & set(str(wanted)):
            return wanted
        elsewhere = Path(tempfile.mkdtemp(prefix=_ELSEWHERE, dir="/tmp"))
        os.chown(elsewhere, self.account.uid, self.account.gid)
        return elsewhere


# A Popen that is collected while its process runs would warn, and these servers may outlive us.
_STARTED: dict[int, subprocess.Popen[bytes]] = {}


def _reap() -> None:
    """Those that ended by themselves."""
    for pid, server in list(_STARTED.items()):
        if server.poll() is not None:
            del _STARTED[pid]


def _listens(directory: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(directory / f".s.PGSQL.{PORT}"))
        except OSError:
            return False
    return True

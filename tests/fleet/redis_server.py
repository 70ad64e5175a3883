"""A real Redis-protocol server that a test kills, freezes and asks."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from asyncpoll.embedded.valkey import installed
from tests.support import eventually, free_port


class RedisServer:
    """On a loopback port, keeping nothing."""

    def __init__(self, directory: Path, program: str | None = None) -> None:
        self.port = free_port()
        self._directory = directory
        self._program = program or str(installed())
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, on the same port each time."""
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self._process = subprocess.Popen(
            [*command, "--dir", str(self._directory)], stdout=subprocess.DEVNULL
        )
        eventually(self._answers)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and say nothing, new ones are accepted by the kernel."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def ask(self, *words: str | bytes) -> str:
        """The server's whole answer to one command, in RESP."""
        return self.ask_often(1, *words)

    def ask_often(self, times: int, *words: str | bytes) -> str:
        """The answers to the same command, sent so many times."""
        encoded = [word.encode() if isinstance(word, str) else word for word in words]
        request = b"*%d\r\n" % len(encoded)
        request += b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            # QUIT, so that the end of the answer is the end of the connection.
            connection.sendall(request * times + b"*1\r\n$4\r\nQUIT\r\n")
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode(errors="replace")

    def clients(self) -> int:
        """Connections, other than this question's."""
        return self.ask("CLIENT", "LIST").count("id=") - 1

    def subscribers(self) -> int:
        """Those of them that listen."""
        return self.ask("CLIENT", "LIST", "TYPE", "pubsub").count("id=")

    def _answers(self) -> bool:
        with suppress(OSError):
            return "PONG" in self.ask("PING")
        return False

"""What both drivers know of httpx: settings, timeouts, and what its errors mean."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import httpx

from asyncpoll.client.deadline import limit
from asyncpoll.client.encodings import Decoder, Undecodable
from asyncpoll.client.exchange import Ask, Failure, FailureKind, Reply
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.redaction import brief

# A held request keeps its connection: as many as there are waits, and none is idle for long.
LIMITS: Final = httpx.Limits(max_connections=None, max_keepalive_connections=None)
NO_REUSE: Final = httpx.Limits(max_connections=None, max_keepalive_connections=0)

_UNCONNECTED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


@cache
def tls() -> ssl.SSLContext:
    """One context for all clients of the process: making one takes longer than many requests."""
    return httpx.create_ssl_context()


def timeouts(ask: Ask, policy: PollPolicy) -> httpx.Timeout:
    """How long each step of an exchange may take."""
    connect = min(policy.connect_seconds, ask.total_seconds)
    return httpx.Timeout(
        ask.read_seconds, connect=connect, pool=ask.total_seconds, write=ask.total_seconds
    )


class TooLarge(Exception):
    """More was sent than may be."""


class Exchange:
    """One request on the wire: when it left, on which kind of connection, and whether the answer had begun."""

    def __init__(self, ask: Ask, policy: PollPolicy) -> None:
        self._began = self._sent = time.monotonic()
        self._ends = self._began + ask.total_seconds
        self._most = policy.max_body_bytes
        self._connected = self._left = self._answered = False
        self._body = bytearray()
        self._decoder = Decoder("")
        self._redirects = 0

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """What httpcore tells of each step."""
        limit(name, info)
        self._note(name)

    async def atrace(self, name: str, info: Mapping[str, Any]) -> None:
        """The same for asynchronous transports, which have a way to bound the whole."""
        self._note(name)

    def _note(self, name: str) -> None:
        if name.startswith("connection.connect"):
            self._connected = True
        elif name.endswith(".send_request_headers.started"):
            self._left, self._sent = True, time.monotonic()
        elif name.endswith(".receive_response_headers.complete"):
            self._answered = True

    def begin(self, response: httpx.Response) -> bool:
        """An answer begins. True where its body is still to come as it was sent; a client's own hooks may have read it.

        Raises DecodingError.
        """
        self._body.clear()
        is_to_come = not response.is_stream_consumed
        with _decoding():
            encoding = response.headers.get("content-encoding", "") if is_to_come else ""
            self._decoder = Decoder(encoding)
        return is_to_come

    def add(self, chunk: bytes) -> None:
        """A part of the body as it was sent. Raises TooLarge, DecodingError, and ReadTimeout once the whole takes too
        long."""
        with _decoding():
            self._body += self._decoder.decode(chunk, self._most - len(self._body) + 1)
        if len(self._body) > self._most:
            raise TooLarge
        if time.monotonic() > self._ends:
            raise httpx.ReadTimeout("the answer takes too long")

    def onward(self, response: httpx.Response, most: int) -> httpx.Request | None:
        """What to send next, of at most `most` redirects that are followed; None: this is the answer.

        Raises TooManyRedirects.
        """
        if response.next_request is None or not most:
            return None
        self._redirects += 1
        if self._redirects > most:
            raise httpx.TooManyRedirects(f"{most} redirects", request=response.request)
        return response.next_request

    def reply(self, response: httpx.Response) -> Reply:
        """The whole answer."""
        return Reply(
            response.status_code,
            {name.lower(): value for name, value in response.headers.items()},
            bytes(self._body),
            self._seconds(),
        )

    def failure(self, error: Exception) -> Failure:
        """What an error means."""
        reused = self._left and not self._connected
        return Failure(self._kind(error), self._words(error), self._seconds(), reused)

    def _kind(self, error: Exception) -> FailureKind:
        if isinstance(error, TooLarge):
            return FailureKind.TOO_LARGE
        if isinstance(error, httpx.TooManyRedirects):
            return FailureKind.REDIRECTED
        if isinstance(error, httpx.UnsupportedProtocol) or _stems_from(error, UnicodeError):
            return FailureKind.REDIRECTED if self._redirects else FailureKind.UNSENDABLE
        if _stems_from(error, ssl.SSLCertVerificationError):
            return FailureKind.UNTRUSTED
        if isinstance(error, _UNCONNECTED):
            return FailureKind.UNCONNECTED
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return FailureKind.SILENT
        return FailureKind.HALF if self._answered else FailureKind.CUT

    def _words(self, error: Exception) -> str:
        if isinstance(error, TooLarge):
            return f"the answer is longer than {self._most} bytes; raise the policy's max_body_bytes if it may be"
        if isinstance(error, TimeoutError):
            return "the answer takes too long"
        return brief(f"{type(error).__name__}: {error}".rstrip(": "))

    def _seconds(self) -> float:
        return time.monotonic() - self._sent


@contextmanager
def _decoding() -> Iterator[None]:
    try:
        yield
    except Undecodable as error:
        raise httpx.DecodingError(str(error)) from error


def _stems_from(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False

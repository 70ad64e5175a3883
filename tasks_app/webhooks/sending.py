"""One attempt to send a webhook: one connection, to an address that was looked at, and nothing of the answer but its status."""

from __future__ import annotations

import asyncio
import ssl
import time
import traceback
from collections.abc import Collection, Iterable, Sequence

import httpcore

from tasks_app.errors import NotifyRefused
from tasks_app.events import emit
from tasks_app.store import Attempt, Due
from tasks_app.webhooks import lookups
from tasks_app.webhooks.payload import body_of
from tasks_app.webhooks.signing import recover, sign
from tasks_app.webhooks.targets import Hook, read

ATTEMPT_SECONDS = 10.0
"""From the look-up to the answer's status."""
# An address that swallows packets must leave time for the next.
_CONNECT_SECONDS = 5.0
_MOST_ADDRESSES = 3

_Headers = dict[str, str]


class Sender:
    """Sends webhooks from one event loop."""

    def __init__(self) -> None:
        # What the system trusts, or SSL_CERT_FILE. Made once: reading it takes tens of milliseconds.
        self._trusted: ssl.SSLContext | None = None

    async def send(self, due: Due, test_hosts: Collection[str]) -> Attempt:
        """Try once, for ten seconds at most. Never raises: what is not on record would be sent again for ever."""
        started = time.monotonic()
        status, error = None, ""
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                status, error = await self._try(due, test_hosts)
        except TimeoutError:
            error = "Timeout"
        except Exception as failure:
            error = type(failure).__name__
            emit(
                "delivery.broke",
                id=due.id,
                host=due.host,
                attempt=due.attempt,
                error=error,
                place=_place_of(failure),
            )
        return Attempt(status, error, (time.monotonic() - started) * 1000)

    async def _try(self, due: Due, test_hosts: Collection[str]) -> tuple[int | None, str]:
        if due.ended is None:
            return None, "TaskGone"
        keys = list(recover(due.owner, due.secrets))
        if not keys:
            return None, "SecretMissing"
        body = body_of(due.id, due.ended)
        try:
            hook = read(due.address, test_hosts)
            addresses = await lookups.addresses_of(hook, due.owner)
            headers = sign(keys, str(due.id), due.at, body)
            status = await self._post(hook, addresses, headers, body.encode())
        except _FAILURES as failure:
            return None, _named(failure)
        return status, "" if 200 <= status < 300 else f"HTTP {status}"

    async def _post(
        self, hook: Hook, addresses: Sequence[str], headers: _Headers, body: bytes
    ) -> int:
        """The status of the answer, whose body is left unread."""
        if self._trusted is None:
            self._trusted = ssl.create_default_context()
        url = httpcore.URL(
            scheme=b"https", host=hook.host.encode(), port=hook.port, target=hook.path.encode()
        )
        sent = {
            "Host": hook.authority,
            "User-Agent": "asyncpoll-webhooks",
            "Content-Type": "application/json",
            "Connection": "close",
            **headers,
        }
        async with (
            # It knows of no proxy, follows no redirect, and keeps no cookie; and it ends with this request.
            httpcore.AsyncConnectionPool(
                ssl_context=self._trusted, network_backend=Pinned(addresses)
            ) as pool,
            pool.stream("POST", url, headers=list(sent.items()), content=body) as answer,
        ):
            return answer.status


class Pinned(httpcore.AsyncNetworkBackend):
    """Connects to these addresses, whatever the name stands for by now. The name is still what TLS asks for and checks."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._addresses = list(addresses)[:_MOST_ADDRESSES]
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first that takes one."""
        for address in self._addresses[:-1]:
            try:
                return await self._backend.connect_tcp(address, port, timeout=_CONNECT_SECONDS)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._backend.connect_tcp(self._addresses[-1], port, timeout=_CONNECT_SECONDS)


_FAILURES = (
    NotifyRefused,
    lookups.AddressRefused,
    lookups.LookupFailed,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    OSError,
)


def _place_of(failure: Exception) -> str:
    """Where it was raised: its text may quote what a receiver sent, or a secret."""
    raised_in = traceback.extract_tb(failure.__traceback__)[-1]
    return f"{raised_in.filename}:{raised_in.lineno}"


def _named(failure: Exception) -> str:
    """A word for a failure: its class, or that of the TLS error behind it. Its text may quote what a receiver sent."""
    seen: BaseException | None = failure
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return "CertificateRefused"
        if isinstance(seen, ssl.SSLError):
            return "TLSError"
        seen = seen.__cause__ or seen.__context__
    return type(failure).__name__

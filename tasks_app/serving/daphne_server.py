"""daphne as a library, with an end that no client notices. Importing this installs Twisted's asyncio reactor."""

from __future__ import annotations

import asyncio
import select
import signal
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from daphne.server import Server  # before anything of Twisted's, or another reactor is installed
from twisted.internet import defer, reactor
from twisted.python.failure import Failure
from twisted.web import http

from tasks_app.collector import calm_collector
from tasks_app.serving.body import ARRIVAL_SECONDS
from tasks_app.serving.channel import Channel
from tasks_app.serving.handshake import Handshake
from tasks_app.serving.problems import TOO_SLOW
from tasks_app.serving.sockets import BACKLOG, turn_away
from tasks_app.serving.wiring import Wiring

# Twisted knows the statuses of its time; the others would be called "Unknown Status".
http.RESPONSES.update({status.value: status.phrase.encode() for status in HTTPStatus})

KEEP_ALIVE_SECONDS = 75
"""How long a connection may idle: longer than balancers keep theirs, so that it is they who close."""

# A balancer needs a moment to see that readiness has turned false; clients without one are better accepted than refused.
_STILL_ACCEPTING_SECONDS = 1.0
# Handshakes that had begun when new ones were turned away need a round trip to complete.
_HANDSHAKES_SECONDS = 0.2
# Half-sent requests and slow views have so long from the last connection that was accepted, however late that was: a
# process that stood still for a moment still answers who came meanwhile.
_ANSWERING_SECONDS = 1.0
_FLUSH_SECONDS = 0.3
_STOP_SECONDS = 1.0
_LOOK_EVERY_SECONDS = 0.02


class DrainingServer(Server):
    """Serves on the listening socket `fd` until SIGTERM, SIGINT, SIGHUP or `begin_drain()`."""

    socket_ends: bool
    """True when nobody serves the socket after those who leave now: then new connections may be turned away."""

    def __init__(
        self,
        application: Any,
        fd: int,
        wiring: Wiring,
        when_ready: Callable[[], object],
        socket_ends: bool = False,
    ) -> None:
        super().__init__(
            application,
            endpoints=[f"fd:fileno={fd}"],
            signal_handlers=False,
            http_timeout=None,
            ready_callable=self._ready,
            server_name="",
        )
        self.socket_ends = socket_ends
        self.failure: BaseException | None = None
        self.channels: set[Channel] = set()
        self._wiring = wiring
        self._when_ready = when_ready
        self._ports: list[Any] = []
        self._drain: asyncio.Task[None] | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop under the reactor."""
        return reactor._asyncioEventloop

    def begin_drain(self) -> None:
        """Answer what is held, let everybody leave, and stop. Again does nothing."""
        if self._drain is None:
            self._drain = self.loop.create_task(self._drain_and_stop())

    def hand_over(self) -> None:
        """Leave the sockets, and whoever is in their queues, to the process that serves them now; then drain."""
        for port in self._take_ports():
            _close(port)
        self.begin_drain()

    def _take_ports(self) -> list[Any]:
        ports, self._ports = self._ports, []
        for port in ports:
            port.stopReading()
        return ports

    def _ready(self) -> None:
        """Called when factory and port exist and before the first connection is accepted."""
        self.http_factory.timeOut = KEEP_ALIVE_SECONDS
        self.http_factory.protocol = Channel
        self.ws_factory.protocol = Handshake
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.loop.add_signal_handler(number, self.begin_drain)
        self._starting = self.loop.create_task(self._start())

    async def _start(self) -> None:
        try:
            await self._wiring.start()
            calm_collector()
        except Exception as error:
            # Whatever it is: whoever runs us raises it, once the reactor has stopped.
            self.failure = error
            self.stop()
        else:
            self._when_ready()

    # What daphne calls, and does otherwise

    def listen_success(self, port: Any) -> None:
        """Keep the port: daphne can't close it."""
        self._ports.append(port)
        super().listen_success(port)

    def listen_error(self, failure: Failure) -> None:
        """Keep the reason: daphne only logs it."""
        self.failure = failure.value
        self.stop()

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Close the connection after an answer that says so: Twisted only heeds what the request says."""
        channel = getattr(protocol, "channel", None)
        if isinstance(channel, Channel):
            if channel.refused:
                return
            if message["type"] == "http.response.start" and _says_close(message):
                protocol.responseHeaders.removeHeader(b"connection")
                channel.persistent = False
        await super().handle_reply(protocol, message)

    def timeout_checker(self) -> None:
        """Cut off what arrives too slowly. Twisted's own timer starts again with each byte."""
        super().timeout_checker()
        for channel in self._open_channels():
            if channel.arriving_for() > ARRIVAL_SECONDS:
                channel.refuse(TOO_SLOW)

    def kill_all_applications(self) -> defer.Deferred[Any]:
        """Cancel what still runs and wait for it, but not for ever; daphne's own trips over half-read requests."""
        running = [
            application
            for details in self.connections.values()
            if (application := details.get("application_instance")) and not application.done()
        ]
        for application in running:
            application.cancel()
        if not running:
            return defer.succeed(None)
        return defer.Deferred.fromFuture(
            asyncio.ensure_future(asyncio.wait(running, timeout=_STOP_SECONDS))
        )

    # The drain

    async def _drain_and_stop(self) -> None:
        try:
            self._wiring.drain.begin_drain()
            await asyncio.sleep(_STILL_ACCEPTING_SECONDS)
            await self._stop_accepting()
            await _until(lambda: all(c.is_idle for c in self._open_channels()), _ANSWERING_SECONDS)
            for channel in self._open_channels():
                channel.turn_out()
            await _until(lambda: not self._open_channels(), _FLUSH_SECONDS)
            await asyncio.wait({asyncio.ensure_future(self._wiring.stop())}, timeout=_STOP_SECONDS)
        finally:
            self.stop()

    async def _stop_accepting(self) -> None:
        """Close the ports in the same tick that finds their queues empty: the kernel resets whoever is left in one."""
        if self.socket_ends and all(map(turn_away, [port.socket for port in self._ports])):
            await asyncio.sleep(_HANDSHAKES_SECONDS)
        for port in self._take_ports():
            _accept_all(port)
            _close(port)

    def _open_channels(self) -> list[Channel]:
        self.channels = {channel for channel in self.channels if not channel.is_upgraded}
        return list(self.channels)


def _accept_all(port: Any) -> None:
    for _ in range(BACKLOG):
        if not _has_queue(port.socket):
            return
        port.doRead()


def _close(port: Any) -> None:
    port.connectionLost(Failure(ConnectionAbortedError()))


async def _until(fact: Callable[[], bool], within: float) -> None:
    deadline = time.monotonic() + within
    while not fact() and time.monotonic() < deadline:  # noqa: ASYNC110 - Twisted sets no event of ours
        await asyncio.sleep(_LOOK_EVERY_SECONDS)


def _says_close(message: dict[str, Any]) -> bool:
    return any(
        name.lower() == b"connection" and b"close" in value.lower()
        for name, value in message.get("headers", ())
    )


def _has_queue(listener: Any) -> bool:
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    return any(events & select.POLLIN for _, events in poll.poll(0))

"""One connection under daphne: when a request began to arrive, what is too slow, and what is too large."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import unquote

from daphne.http_protocol import WebRequest
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web import http

from tasks_app.serving.cors import sharing
from tasks_app.serving.lean import body_limit, is_lean
from tasks_app.serving.problems import (
    GOING_AWAY,
    HEAD_TOO_LONG,
    MALFORMED,
    TOO_SLOW,
    Refusal,
    body_too_large,
)

# A refused client may still be sending. Its bytes are read and thrown away for so long, because closing on unread
# bytes resets the connection, and the answer with it.
_LINGER_SECONDS = 5.0


class BoundedRequest(WebRequest):
    """A request whose body is counted while it arrives, and refused the moment that it is too large."""

    _limit: int | None = None
    _received = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Django parses forms by itself, with limits; Twisted would do it before anybody is asked, and without.
        self._parsePOSTFormSubmission = False

    def gotLength(self, length: int | None) -> None:
        """Twisted's end of the headers; `length` is None for a chunked body."""
        super().gotLength(length)
        if length == 0:
            return
        self._limit = body_limit(_path_of(self.channel._path))
        self._count(length or 0)

    def handleContentChunk(self, data: bytes) -> None:
        """Twisted's next piece of the body."""
        self._received += len(data)
        self._count(self._received)
        if not self.channel.refused:
            super().handleContentChunk(data)

    def process(self) -> None:
        """Twisted's end of the body: call the application."""
        if not self.channel.refused:
            super().process()

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """daphne's own answer to what the application can't be asked, as a problem document instead of a page."""
        channel = getattr(self, "channel", None)
        if channel is None:
            return
        channel.persistent = False
        response = Refusal(status, "about:blank", f"{body.rstrip('.')}.", closes=True).response()
        headers = [(name.encode(), value.encode()) for name, value in response.items()]
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": response.content})

    def _count(self, size: int) -> None:
        if self._limit is not None and size > self._limit:
            # Otherwise Twisted would now ask for the body.
            self.requestHeaders.removeHeader(b"Expect")
            self.channel.refuse(body_too_large(self._limit))


def _path_of(uri: bytes) -> str:
    return unquote(uri.partition(b"?")[0].decode("ascii", "replace"))


class Channel(http.HTTPChannel):
    """A client's connection. The server finds all of them in `server.channels`."""

    transport: Any
    """Twisted's end of the connection: read, written, and half-closed."""

    refused = False
    """True once `refuse` has answered."""

    _arriving_since: float | None = None
    _fresh = True
    _unread: Any = None

    def connectionMade(self) -> None:
        """Twisted's start of the connection."""
        super().connectionMade()
        self.requestFactory = BoundedRequest  # daphne's factory has just set its own
        self.factory.server.channels.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Twisted's end of the connection."""
        self.factory.server.channels.discard(self)
        super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:
        """Twisted's next bytes from the client."""
        if self._arriving_since is None and not self.requests:
            self._arriving_since = time.monotonic()
        super().dataReceived(data)

    def allContentReceived(self) -> None:
        """Twisted's end of a request."""
        self._arriving_since = None
        self._fresh = False
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:
        """Twisted's end of an answer. While the client does not read it, none of its next requests is begun.

        Twisted would go on with those that it has already received, and keep all their answers in memory.
        """
        if not (self.persistent and self._waitingForTransport):
            super().requestDone(request)
            return
        self._unread = request
        self._networkProducer.pauseProducing()  # type: ignore[misc]
        self.setTimeout(self._savedTimeOut)

    def resumeProducing(self) -> None:
        """Twisted's word that the client reads again."""
        super().resumeProducing()
        unread, self._unread = self._unread, None
        if unread is not None:
            super().requestDone(unread)

    @property
    def is_upgraded(self) -> bool:
        """True when the connection is a WebSocket by now, and somebody else's."""
        return getattr(self.transport, "protocol", None) is not self

    @property
    def is_arriving(self) -> bool:
        """True between the first and the last byte of a request."""
        return self._arriving_since is not None

    @property
    def is_idle(self) -> bool:
        """True between requests; not yet for a client that has connected and may be about to send its first."""
        return not (self._fresh or self.requests or self.is_arriving or self.refused)

    def arriving_for(self) -> float:
        """Seconds since the first byte of the request that is arriving; 0 if none is."""
        return 0.0 if self._arriving_since is None else time.monotonic() - self._arriving_since

    def refuse(self, refusal: Refusal) -> None:
        """Answer with `refusal` in place of the application, and close. Again does nothing."""
        if self.refused:
            return
        self.refused = self.paused = True
        self._arriving_since = None
        self.dataReceived = lambda data: None  # type: ignore[method-assign]
        self.transport.write(refusal.message(self._sharing()))
        self.transport.loseWriteConnection()
        self.callLater(_LINGER_SECONDS, self.transport.abortConnection)

    def _sharing(self) -> dict[str, str]:
        """What the page that sent the request may see of its refusal, as far as its headers have come."""
        if not self.requests:
            return {}
        request = self.requests[0]
        # Twisted has the address here until the body has come, and then there.
        if not is_lean(_path_of(getattr(self, "_path", request.uri))):
            return {}
        return sharing(request.requestHeaders.getRawHeaders(b"origin", []))

    def _respondToBadRequestAndDisconnect(self) -> None:
        """Twisted's end of what it can't parse."""
        self.refuse(MALFORMED)

    def lineLengthExceeded(self, line: bytes) -> None:
        """Twisted's end of a line that is too long to keep."""
        self.refuse(HEAD_TOO_LONG)

    def turn_out(self) -> None:
        """End the connection, with an answer to whatever is on it."""
        # What the kernel has received counts; closing on it would be a reset.
        self.transport.doRead()
        if self.is_arriving:
            self.refuse(TOO_SLOW)
        elif not self.requests:
            self.loseConnection()
        elif not self.requests[0]._response_started:
            self.refuse(GOING_AWAY)

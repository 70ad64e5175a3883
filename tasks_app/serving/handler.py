"""The ASGI application: holds are served the lean way, everything else as Django does."""

from __future__ import annotations

from typing import Any

import django
from django.core.handlers.asgi import ASGIHandler

from tasks_app import conf
from tasks_app.observers import logs, tracing
from tasks_app.redaction import without_ticket
from tasks_app.serving.lean import LeanHandler, lean_match
from tasks_app.serving.lifespan import Lifespan
from tasks_app.serving.proxies import networks, with_client
from tasks_app.serving.wiring import Wiring, process_wiring


def get_asgi_application() -> AsyncpollHandler:
    """Django's ASGI application, with views of asyncpoll served the lean way. For a project's asgi.py."""
    django.setup(set_prefix=False)
    networks(
        conf.current().TRUSTED_PROXIES
    )  # wrong settings fail now, and not in the first request
    logs.install()
    tracing.install()
    return AsyncpollHandler(process_wiring())


class AsyncpollHandler(ASGIHandler):
    """Serves a whole Django project. While it drains, every answer closes its connection."""

    holds_without_threads = True
    """What the system check looks for in ASGI_APPLICATION."""

    def __init__(self, wiring: Wiring) -> None:
        super().__init__()
        self.wiring = wiring
        self._lean = LeanHandler(wiring.drain)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one ASGI scope. WebSockets are refused: whoever has some routes them before us."""
        if scope["type"] == "lifespan":
            await Lifespan(self.wiring).run(receive, send)
            return
        if scope["type"] == "websocket":
            # Django would raise, and every handshake of a stranger be a traceback in the log.
            await receive()
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "http":
            servers, scope = scope, with_client(scope)
            match = lean_match(scope)
            if match is not None:
                scope = _hiding_ticket(servers, scope)
                await self._lean.answer(match, scope, receive, send)
                return
            send = self._closing_while_draining(scope, send)
        await super().__call__(scope, receive, send)

    def _closing_while_draining(self, scope: dict[str, Any], send: Any) -> Any:
        if not scope.get("http_version", "1.1").startswith("1"):
            return send  # HTTP/2 has no such header
        drain = self.wiring.drain

        async def send_and_close(message: dict[str, Any]) -> None:
            if drain.draining and message["type"] == "http.response.start":
                message = {**message, "headers": _closing(message.get("headers", ()))}
            await send(message)

        return send_and_close


def _hiding_ticket(servers: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
    """`scope`, for a request that has a ticket; in the server's own, which its access log prints, that is hidden."""
    query = servers.get("query_string", b"")
    hidden = without_ticket(query.decode("latin1")).encode("latin1")
    if hidden == query:
        return scope
    scope = {**scope}
    servers["query_string"] = hidden
    return scope


def _closing(headers: Any) -> list[tuple[bytes, bytes]]:
    others = [(name, value) for name, value in headers if name.lower() != b"connection"]
    return [*others, (b"Connection", b"close")]

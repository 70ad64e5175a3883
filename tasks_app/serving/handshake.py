"""The end of a WebSocket handshake that nobody accepts: a problem document, as for everything else that is refused."""

from __future__ import annotations

from typing import Any

from daphne.ws_protocol import WebSocketProtocol

from tasks_app.serving.problems import Refusal


class Handshake(WebSocketProtocol):
    """A WebSocket, or what wanted to become one."""

    def sendHttpErrorResponse(self, code: int, reason: str, responseHeaders: Any = None) -> None:
        """autobahn's answer, which would be a status line without any header."""
        refusal = Refusal(
            code, "about:blank", f"No WebSocket was opened: {reason.rstrip('.')}.", closes=True
        )
        self.sendData(refusal.message(dict(responseHeaders or ())))

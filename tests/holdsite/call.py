"""Calling an ASGI application without a server."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.holdsite.client import Answer


class Call:
    """One HTTP request to `application`, in a task of its own, that can be hung up on."""

    def __init__(
        self,
        application: Any,
        path: str,
        *,
        method: str = "GET",
        body: tuple[bytes, ...] = (b"",),
        **scope: Any,
    ) -> None:
        self.sent: list[dict[str, Any]] = []
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for number, chunk in enumerate(body, 1):
            more = number < len(body)
            self._incoming.put_nowait({"type": "http.request", "body": chunk, "more_body": more})
        self.scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            **scope,
        }
        self.task = asyncio.create_task(application(self.scope, self._incoming.get, self._send))

    def hang_up(self) -> None:
        """Leave."""
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def answer(self) -> Answer:
        """Wait for the end and give what was sent."""
        await self.task
        start, *chunks = self.sent
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(chunk["body"] for chunk in chunks))

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

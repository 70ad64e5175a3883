"""Both clients behind one face, so that each test of the SDK is one of both drivers."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from asyncpoll.client import AsyncClient, Client

KINDS = ("sync", "async")


class Caller:
    """A client whose calls are awaited, whichever it is: the blocking one has a thread to block."""

    def __init__(self, kind: str, base_url: str, **options: Any) -> None:
        make = Client if kind == "sync" else AsyncClient
        self.client: Any = make(base_url, **options)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if inspect.isasyncgenfunction(method):
                return [item async for item in method(*args, **kwargs)]
            if inspect.iscoroutinefunction(method):
                return await method(*args, **kwargs)
            if inspect.isgeneratorfunction(method):
                return await asyncio.to_thread(lambda: list(method(*args, **kwargs)))
            return await asyncio.to_thread(method, *args, **kwargs)

        return call

    async def __aenter__(self) -> Caller:
        return self

    async def __aexit__(self, *error: object) -> None:
        await (self.aclose() if isinstance(self.client, AsyncClient) else self.close())

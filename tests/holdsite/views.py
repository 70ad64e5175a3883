"""Views that wait, count, fail and refuse to go."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse

from tests.holdsite.holds import holds

_ERRORS = {
    "missing": Http404("No such thing."),
    "forbidden": PermissionDenied("Not yours."),
    "failure": RuntimeError("secret detail"),
}
_stubborn_ended: list[str] = []


async def hold(request: HttpRequest) -> HttpResponse:
    """Wait until released, or so many seconds."""
    seconds = float(request.GET.get("seconds", "600"))
    try:
        async with asyncio.timeout(seconds):
            outcome = await holds.wait()
    except TimeoutError:
        outcome = "STILL_RUNNING"
    return JsonResponse({"outcome": outcome})


async def ready(request: HttpRequest) -> HttpResponse:
    """What a balancer asks."""
    return JsonResponse({}, status=503 if holds.draining else 200)


async def client(request: HttpRequest) -> HttpResponse:
    """Whose request it is."""
    return JsonResponse({"address": request.META["REMOTE_ADDR"]})


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    """An answer in two parts, the second one when released."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"first"
        await holds.wait()
        yield b"second"

    return StreamingHttpResponse(parts())


async def stubborn(request: HttpRequest) -> HttpResponse:
    """Wait, and swallow the first cancellation as careless library code does."""
    try:
        await holds.wait()
    except asyncio.CancelledError:
        try:
            await asyncio.sleep(60)
        finally:
            _stubborn_ended.append("cancelled again")
    return JsonResponse({})


async def state(request: HttpRequest) -> HttpResponse:
    """What the process holds."""
    return JsonResponse(
        {
            "held": holds.held,
            "pid": os.getpid(),
            "most": holds.most,
            "stubborn_ended": len(_stubborn_ended),
            "tasks": len(asyncio.all_tasks()),
        }
    )


async def echo(request: HttpRequest) -> HttpResponse:
    """How long the body was."""
    return JsonResponse({"length": len(request.body), "query": request.GET.get("q")})


async def fail(request: HttpRequest, how: str) -> HttpResponse:
    """Raise."""
    raise _ERRORS[how]


async def nothing(request: HttpRequest) -> HttpResponse:
    """An answer without a body."""
    return HttpResponse(status=304)


async def last(request: HttpRequest) -> HttpResponse:
    """An answer that ends its connection."""
    return HttpResponse("last", headers={"Connection": "close"})


def large(request: HttpRequest) -> HttpResponse:
    """An answer of some size."""
    return HttpResponse(b"x" * int(request.GET["bytes"]))


def slow(request: HttpRequest) -> HttpResponse:
    """A synchronous view that takes its time."""
    time.sleep(float(request.GET["seconds"]))
    return HttpResponse("slept")


def plain(request: HttpRequest) -> HttpResponse:
    """A view that is Django's and not asyncpoll's."""
    return HttpResponse("plain")

"""What this process and its siblings count and are, for Prometheus."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from tasks_app.api.anonymous import is_from_here
from tasks_app.api.guard import api_view, authorize
from tasks_app.headers import security_headers
from tasks_app.observers.exposition import MEDIA_TYPE, merged
from tasks_app.observers.measuring import measuring
from tasks_app.observers.states import ProcessesUse, QueueUse
from tasks_app.scrapes.own import own_figures
from tasks_app.scrapes.siblings import gathered


@api_view("GET", "HEAD")
async def metrics(request: HttpRequest) -> HttpResponse:
    """GET /metrics: for tokens with the scope `metrics`, and for programs on this machine."""
    if "HTTP_AUTHORIZATION" in request.META or not is_from_here(request):
        await authorize(request, "metrics")
    depths, others = await asyncio.gather(measuring.depths(), gathered())
    processes = ProcessesUse(answering=1 + len(others.texts), silent=others.silent)
    own = await own_figures([QueueUse(depths), processes])
    return _text(merged([own, *others.texts]).encode())


def _text(body: bytes) -> HttpResponse:
    response = HttpResponse(body, status=HTTPStatus.OK, content_type=MEDIA_TYPE)
    headers = {"Cache-Control": "no-store", "Content-Length": str(len(body)), **security_headers()}
    for name, value in headers.items():
        response.headers[name] = value
    return response

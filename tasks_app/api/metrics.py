"""What this process counts and is, for Prometheus."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from tasks_app.api.anonymous import is_from_here
from tasks_app.api.guard import api_view, authorize
from tasks_app.headers import security_headers
from tasks_app.hold.admission import admission
from tasks_app.observers.exposition import MEDIA_TYPE, exposition
from tasks_app.observers.measuring import measuring
from tasks_app.observers.metrics import install
from tasks_app.observers.states import LinkUse, PoolUse, QueueUse, ServingUse
from tasks_app.wakeup.service import current_service


@api_view("GET", "HEAD")
async def metrics(request: HttpRequest) -> HttpResponse:
    """GET /metrics: for tokens with the scope `metrics`, and for programs on this machine."""
    if "HTTP_AUTHORIZATION" in request.META or not is_from_here(request):
        await authorize(request, "metrics")
    install()  # where no server of ours has done so, counting begins now
    service = await current_service()
    body = exposition(
        [
            serving_use(),
            LinkUse(service.state),
            PoolUse(service.pool.stats),
            QueueUse(await measuring.depths()),
        ]
    )
    return _text(body)


def serving_use() -> ServingUse:
    """The requests in this process."""
    return ServingUse(
        held=dict(admission.held_by),
        inside=admission.inside,
        most_held=admission.most_held,
        draining=admission.draining,
        lag_seconds=admission.lag_seconds,
        tasks=len(asyncio.all_tasks()),
    )


def _text(body: bytes) -> HttpResponse:
    response = HttpResponse(body, status=HTTPStatus.OK, content_type=MEDIA_TYPE)
    headers = {"Cache-Control": "no-store", "Content-Length": str(len(body)), **security_headers()}
    for name, value in headers.items():
        response.headers[name] = value
    return response

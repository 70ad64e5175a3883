"""A hold without a task, by which `manage.py probegateway` measures what stands between the server and its clients."""

from __future__ import annotations

import asyncio

from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import Problem
from tasks_app.api.guard import api_view
from tasks_app.api.query import single
from tasks_app.api.responses import ProblemRaised, answer, problem
from tasks_app.errors import TooManyHeld
from tasks_app.hold.admission import Account, Verdict, admission
from tasks_app.hold.window import parse_seconds

LONGEST_SECONDS = 150.0
"""The longest hold of a probe: more than MAX_HOLD_SECONDS, which is what it is to find out."""

_SALT = "asyncpoll.probe"
# Of its own: no owner's places, and nobody else's, are what a gateway is measured with.
_ACCOUNT = Account("manage.py probegateway", is_crowd=True)
_TICKET_SECONDS = 600
# Who probes sees holds end when the server drains. A few requests at a time: they may look.
_LOOK_EVERY_SECONDS = 0.2


def probe_ticket() -> str:
    """What lets its holder use `probe` for ten minutes: whoever has the project's SECRET_KEY can make one."""
    return TimestampSigner(salt=_SALT).sign("probe")


@api_view("GET")
async def probe(request: HttpRequest) -> HttpResponse:
    """Hold for `seconds`, whatever MAX_HOLD_SECONDS says, and answer."""
    _require_ticket(single(request, "ticket") or "")
    seconds = parse_seconds(single(request, "seconds") or "0", "seconds")
    with admission.enter(_ACCOUNT, wants_hold=True, route="probe") as verdict:
        if verdict is not Verdict.HOLD:
            raise TooManyHeld("This server holds as many requests as it may; probe again later.")
        held = await _hold(min(seconds, LONGEST_SECONDS))
    return answer({"held_seconds": round(held, 3), "draining": admission.draining})


def _require_ticket(text: str) -> None:
    try:
        TimestampSigner(salt=_SALT).unsign(text, max_age=_TICKET_SECONDS)
    except BadSignature:
        raise ProblemRaised(
            problem(
                Problem.FORBIDDEN,
                403,
                "This is for manage.py probegateway, run with the SECRET_KEY that the server has.",
            )
        ) from None


async def _hold(seconds: float) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (left := began + seconds - loop.time()) > 0 and not admission.draining:  # noqa: ASYNC110 - it sets no event
        await asyncio.sleep(min(left, _LOOK_EVERY_SECONDS))
    return loop.time() - began

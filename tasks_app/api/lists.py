"""GET …/tasks: lists of an owner's tasks, a page at a time."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from hmac import compare_digest
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from asyncpoll.contract import Status
from tasks_app.api.guard import api_view
from tasks_app.api.identity import Identity, refuse_ticket
from tasks_app.api.query import name, single
from tasks_app.api.representation import task_summary
from tasks_app.api.responses import answer
from tasks_app.errors import BadParameter
from tasks_app.owned import owned
from tasks_app.store import Page, Sought, list_tasks
from tasks_app.store.pool import loop_pool

MOST_TASKS = 200
USUAL_TASKS = 50
_ID_BYTES = 16
_CHECK_BYTES = 8


@api_view("GET", "HEAD", scope="read")
async def tasks(request: HttpRequest, identity: Identity) -> HttpResponse:
    """Newest first. Never a count: nobody can say how many there are without looking at all of them."""
    refuse_ticket(identity)
    sought = Sought(identity.owner, _status(request), name(request, "task"), name(request, "queue"))
    limit, before = _limit(request), _before(request, sought)
    page = await owned(_read(sought, limit, before))
    return answer(
        {
            "tasks": [task_summary(row) for row in page.tasks],
            "next_cursor": None if page.before is None else _cursor(page.before, sought),
        }
    )


async def _read(sought: Sought, limit: int, before: UUID | None) -> Page:
    return await (await loop_pool()).run(list_tasks(sought, limit, before))


def _status(request: HttpRequest) -> Status | None:
    text = single(request, "status")
    if text is None:
        return None
    try:
        return Status(text)
    except ValueError:
        raise BadParameter("status", text, f"must be one of {', '.join(Status)}") from None


def _limit(request: HttpRequest) -> int:
    text = single(request, "limit")
    if text is None:
        return USUAL_TASKS
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MOST_TASKS):
        raise BadParameter("limit", text, f"must be a whole number from 1 to {MOST_TASKS}")
    return int(text)


def _cursor(before: UUID, sought: Sought) -> str:
    """Where the next page begins, and which list it is of. Sealed: a search may end at somebody else's task."""
    check = _check(before.bytes, sought)
    return urlsafe_b64encode(_veil(before.bytes, check) + check).rstrip(b"=").decode()


def _before(request: HttpRequest, sought: Sought) -> UUID | None:
    text = single(request, "cursor")
    if text is None:
        return None
    try:
        raw = urlsafe_b64decode(text.encode("ascii"))
    except (Error, ValueError):
        raw = b""
    check = raw[_ID_BYTES:]
    position = _veil(raw[:_ID_BYTES], check)
    if len(position) != _ID_BYTES or not compare_digest(check, _check(position, sought)):
        raise BadParameter(
            "cursor",
            text,
            "must be the next_cursor of an answer to the same filters; leave it out to begin with the newest",
        )
    return UUID(bytes=position)


def _check(position: bytes, sought: Sought) -> bytes:
    facts = f"{sought.owner!r} {sought.status} {sought.name!r} {sought.queue!r}"
    return _digest("check", position + facts.encode())[:_CHECK_BYTES]


def _veil(position: bytes, check: bytes) -> bytes:
    """Position and check tell each other's secret, as in the synthetic vectors of RFC 5297; twice is once none."""
    return bytes(one ^ other for one, other in zip(position, _digest("veil", check), strict=False))


def _digest(use: str, value: bytes) -> bytes:
    return salted_hmac(f"{__name__}.{use}", value, algorithm="sha256").digest()

"""What a scripted server can do with a request: well-behaved answers, and all that goes wrong on the way to one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from asyncpoll.contract import (
    JSON_MEDIA_TYPE,
    PROBLEM_MEDIA_TYPE,
    READ_TIMEOUT_MARGIN_MS,
    Outcome,
    Status,
)

Ending: TypeAlias = Literal["whole", "cut", "reset", "half"]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came; `connection` counts the connections, from 1, and `at` is monotonic."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    at: float
    connection: int

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        """The parameters; of one that was given twice, the last."""
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def hold_seconds(self) -> float:
        """The hold that was asked for."""
        return float(self.query.get("max_hold_seconds", 0))

    @property
    def task_id(self) -> str:
        """The task in the path."""
        _, found, rest = self.path.partition("/tasks/")
        return rest.partition("/")[0] if found else "submitted"


Document: TypeAlias = Mapping[str, Any] | Callable[[Received], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Act:
    """One answer. `after` seconds go by first; `ending` is what comes of it; `pause` is between its single bytes."""

    status: int = 200
    document: Document | None = None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float = 0.0
    ending: Ending = "whole"
    pause: float = 0.0

    def bytes_for(self, received: Received) -> bytes:
        """The answer as it goes over the wire."""
        document = self.document(received) if callable(self.document) else self.document
        body = self.body if document is None else json.dumps(document).encode()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.compress(body)
        headers = {
            "Content-Type": JSON_MEDIA_TYPE,
            "Date": _date(0),
            **self.headers,
            "Content-Length": str(len(body)),
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} Scripted\r\n{lines}\r\n".encode() + body


def answer(
    status: str = Status.RUNNING, version: int = 1, *, after: float = 0.0, **fields: Any
) -> Act:
    """A long poll's answer about the task that was asked for. `fields` are added, or replace what is there."""

    def document(received: Received) -> Mapping[str, Any]:
        over = Status(status).is_terminal
        granted = round(received.hold_seconds * 1000)
        return {
            "task_id": received.task_id,
            "task": "scripted",
            "status": status,
            "version": version,
            "progress": None,
            "message": "",
            "attempt": 1,
            "result": None,
            "error": None,
            "stalled": False,
            "outcome": Outcome.TERMINAL if over else Outcome.CHANGED,
            "should_continue_polling": not over,
            "recommended_client_backoff_ms": 0,
            "hold_duration_ms": round(after * 1000, 1),
            "hold_granted_ms": granted,
            "client_read_timeout_ms": granted + READ_TIMEOUT_MARGIN_MS,
            **fields,
        }

    return Act(document=document, after=after)


def still_running(version: int = 1, *, after: float = 0.0, backoff_ms: int = 50) -> Act:
    """A roll-over: the hold ran out and nothing happened."""
    return answer(
        Status.RUNNING,
        version,
        after=after,
        outcome=Outcome.STILL_RUNNING,
        recommended_client_backoff_ms=backoff_ms,
    )


def success(result: Any = None, version: int = 9, *, after: float = 0.0) -> Act:
    """The task is over and has a result."""
    return answer(Status.SUCCESS, version, after=after, result=result)


def failure(kind: str = "ValueError", message: str = "no", version: int = 9) -> Act:
    """The task is over and has an error."""
    return answer(Status.FAILED, version, error={"type": kind, "message": message})


def cut(after: float = 0.0) -> Act:
    """The connection is closed instead of an answer, as by a gateway that has no more patience."""
    return Act(after=after, ending="cut")


def reset(after: float = 0.0) -> Act:
    """The connection is reset (RST) instead of an answer."""
    return Act(after=after, ending="reset")


def half(act: Act) -> Act:
    """The connection is closed in the middle of the answer."""
    return replace(act, ending="half")


def page(status: int = 200, *, after: float = 0.0, retry_after: str | None = None) -> Act:
    """A page for people, as gateways and login walls send it: any status, 200 among them."""
    asked = {"Retry-After": retry_after} if retry_after else {}
    body = f"<html><body><h1>{status}</h1></body></html>".encode()
    return Act(status, body=body, headers={"Content-Type": "text/html", **asked}, after=after)


def problem(status: int, kind: str = "about:blank", detail: str = "no", **headers: str) -> Act:
    """A problem document (RFC 9457). Underscores in the names of headers are hyphens: `Retry_After="5"`."""
    document = {"type": kind, "title": detail, "status": status, "detail": detail}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Act(status, document, headers={"Content-Type": PROBLEM_MEDIA_TYPE, **named})


def busy(
    seconds: float, *, as_date: bool = False, clock_off_by: float = 0.0, status: int = 503
) -> Act:
    """Refused for now, with a Retry-After: in seconds, or as a date of a server whose clock is wrong by so many seconds."""
    if not as_date:
        return problem(status, detail="busy", Retry_After=f"{seconds:g}")
    return problem(
        status, detail="busy", Retry_After=_date(clock_off_by + seconds), Date=_date(clock_off_by)
    )


def redirect(to: str | None = None, status: int = 302) -> Act:
    """A redirect, to where the request came from if nowhere else."""
    return Act(status, headers={"Location": to or "/again"})


def trickle(act: Act, pause: float) -> Act:
    """The answer a byte at a time, its headers as well."""
    return replace(act, pause=pause)


def gzipped(act: Act) -> Act:
    """The answer with its body compressed."""
    return replace(act, headers={**act.headers, "Content-Encoding": "gzip"})


def silence() -> Act:
    """Nothing comes, and the connection stays open."""
    return Act(after=float("inf"))


def _date(seconds_from_now: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds_from_now), usegmt=True)

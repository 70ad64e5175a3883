"""Answers in words. What a server says never steers the terminal."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from asyncpoll.client import Answer, Milestone
from asyncpoll.contract import percent


def clean(text: str) -> str:
    """`text` on one line, without anything that a terminal might obey."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def state(answer: Answer) -> str:
    """Where the task is: `RUNNING 42 % checking 390 of 7807 files`."""
    return _joined(standing(answer), "" if answer.is_terminal else answer.message)


def standing(answer: Answer) -> str:
    """The same without the task's own words."""
    if answer.is_terminal:
        return answer.status
    stalled = "(stalled: its worker is silent)" if answer.stalled else ""
    return _joined(answer.status, _done(answer.progress), stalled)


def counted(ended: int, of: int) -> str:
    """How far a wait for several tasks has come."""
    return f"{ended} of {of} tasks are over"


def happened(milestone: Milestone) -> str:
    """What happened, and when: `12:30:01 started`."""
    when = _time(milestone.at)
    gap = "(some before it are not kept)" if milestone.gap else ""
    return _joined(when, milestone.kind, _done(milestone.progress), gap, milestone.message)


def _time(at: str) -> str:
    """The time of day here."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return at


def failure(answer: Answer) -> str:
    """Why there is no result."""
    error = answer.error or {}
    if not error:
        return clean(f"Task {answer.task_id} is {answer.status}.")
    return clean(
        f"Task {answer.task_id} is {answer.status}: {error.get('type')}: {error.get('message')}"
    )


def _done(progress: float | None) -> str:
    """`42 %`, or nothing."""
    return "" if progress is None else percent(progress)


def document(value: Any, indent: int | None = None) -> str:
    """JSON, readable in any language, in which what is not printable is escaped, and what is no number is null."""
    text = _json(value, indent)
    return "".join(
        letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1]
        for letter in text
    )


def _json(value: Any, indent: int | None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        # Python also reads NaN, Infinity and 1e999, which JSON can't say.
        return _json(json.loads(json.dumps(value), parse_constant=lambda _: None), indent)


def _joined(*parts: str) -> str:
    return " ".join(clean(part) for part in parts if part)

"""The polling file: what `pollplan` found out about each task type, for the SDK and the pytest plugin to read.

One JSON document. `read` refuses what is not exactly one, so that a client never waits by half a plan.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

FORMAT: Final = 1
FIRST_POLLS: Final = 5
_SHORTEST: Final = 0.001
_LONGEST: Final = 1e18
_REMEDY: Final = "make the file again with `asyncpoll plan` or `manage.py pollplan`"


class PlanFileError(ValueError):
    """A polling file can't be read or written, or a plan breaks a rule. Names the value, the rule and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """How to wait for one type of task. None stands where `samples` were too few; `notes` says so in words.

    `first_polls` polls come every `first_interval_seconds`, each later one after `growth` times the wait before, up to
    `max_interval_seconds`. `hold_seconds` is what to ask of a server that holds, `timeout_seconds` when to give up,
    `ci_timeout_seconds` what the next run in CI may take. Raises PlanFileError for a value that can't be.
    """

    task: str
    samples: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    timeout_seconds: float | None = None
    first_interval_seconds: float | None = None
    first_polls: int = FIRST_POLLS
    growth: float = 2.0
    max_interval_seconds: float = 5.0
    hold_seconds: float | None = None
    ci_timeout_seconds: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_text(self)
        _check_counts(self)
        _check_numbers(self)
        _check_order(self)

    def intervals(self) -> Iterator[float] | None:
        """The seconds to wait before each poll, without end; None where samples were too few to tell."""
        return None if self.first_interval_seconds is None else self._growing()

    def _growing(self) -> Iterator[float]:
        wait = self.first_interval_seconds or 0.0
        for _ in range(self.first_polls):
            yield wait
        while True:
            wait = min(wait * self.growth, self.max_interval_seconds)
            yield wait


@dataclass(frozen=True, slots=True)
class PlanFile:
    """Plans for several types of task, and when they were made (UTC)."""

    made_at: datetime
    plans: tuple[TaskPlan, ...]
    format: int = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT or isinstance(self.format, bool):
            raise _refusal("format", self.format, f"has to be {FORMAT}, the one known here")
        if self.made_at.tzinfo is None:
            raise _refusal("made_at", self.made_at.isoformat(), "needs a time zone, such as Z")
        for name, times in Counter(plan.task for plan in self.plans).items():
            if times > 1:
                raise _refusal("plans", name, "may name a task once")

    def for_task(self, name: str) -> TaskPlan | None:
        """The plan for the task type `name`, or None."""
        return next((plan for plan in self.plans if plan.task == name), None)


def read(path: str | Path) -> PlanFile:
    """The polling file at `path`. Raises PlanFileError if it is not there, not readable, or breaks a rule."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PlanFileError(
            f"The polling file {path} can't be read ({reason}); {_REMEDY}."
        ) from None
    try:
        return parse(text)
    except PlanFileError as error:
        raise PlanFileError(f"{path}: {error}") from None


def write(path: str | Path, content: PlanFile) -> None:
    """Put `content` at `path`, all of it or, if that fails, nothing. Raises PlanFileError.

    Where `path` is a link, what it leads to is replaced, and a pipe or a terminal is written to.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_text(render(content), encoding="utf-8")
        else:
            _replace(Path(os.path.realpath(target)), render(content))
    except OSError as error:
        raise PlanFileError(f"The polling file {unwritable(path, error)}.") from None


def unwritable(path: str | Path, error: OSError) -> str:
    """Why `path` can't be written, and what to do."""
    return f"{path} can't be written ({error.strerror}); name a file in a directory that exists and may be written to"


def _replace(target: Path, text: str) -> None:
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def render(content: PlanFile) -> str:
    """`content` as the text of a polling file."""
    made_at = content.made_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    plans = [asdict(plan) for plan in content.plans]
    return (
        json.dumps({"format": content.format, "made_at": made_at, "plans": plans}, indent=2) + "\n"
    )


def parse(text: str) -> PlanFile:
    """A polling file from its text. Raises PlanFileError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanFileError(f"It is not JSON ({error}); {_REMEDY}.") from None
    _check_keys(
        "the file", document, {"format", "made_at", "plans"}, {"format", "made_at", "plans"}
    )
    if not isinstance(document["plans"], list):
        raise _refusal("plans", document["plans"], "has to be a list")
    return PlanFile(
        format=document["format"],
        made_at=_moment(document["made_at"]),
        plans=tuple(_plan(each) for each in document["plans"]),
    )


def _plan(document: Any) -> TaskPlan:
    _check_keys("a plan", document, {"task", "samples"}, {field.name for field in fields(TaskPlan)})
    notes = document.get("notes", [])
    return TaskPlan(**{**document, "notes": tuple(notes) if isinstance(notes, list) else notes})


def _moment(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _refusal("made_at", value, "has to be a time such as 2026-01-31T09:30:00Z") from None


def _check_keys(what: str, document: Any, needed: set[str], known: set[str]) -> None:
    if not isinstance(document, dict):
        raise _refusal(what, document, "has to be a JSON object")
    for name in sorted(needed - set(document)):
        raise PlanFileError(f"{name} is missing from {what}; {_REMEDY}.")
    for name in sorted(set(document) - known):
        raise _refusal(what, name, "has no such member")


def _check_text(plan: TaskPlan) -> None:
    if not isinstance(plan.task, str) or not plan.task:
        raise _refusal("task", plan.task, "has to be the name of a task type")
    if not isinstance(plan.notes, tuple) or not all(isinstance(note, str) for note in plan.notes):
        raise _refusal("notes", plan.notes, "has to be a list of sentences")


def _check_counts(plan: TaskPlan) -> None:
    for name in ("samples", "first_polls"):
        value = getattr(plan, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise _refusal(name, value, "has to be a whole number, 0 or more")


def _check_numbers(plan: TaskPlan) -> None:
    for name in ("p50_ms", "p95_ms", "p99_ms"):
        if getattr(plan, name) is not None:
            _check_number(plan, name, 0.0, "has to be a number of milliseconds, 0 or more")
    for name in ("timeout_seconds", "first_interval_seconds", "hold_seconds", "ci_timeout_seconds"):
        if getattr(plan, name) is not None:
            _check_number(plan, name, _SHORTEST, "has to be a number of seconds above 0")
    _check_number(plan, "growth", 1.0, "has to be 1 or more: waits never shrink")
    _check_number(plan, "max_interval_seconds", _SHORTEST, "has to be a number of seconds above 0")


def _check_number(plan: TaskPlan, name: str, least: float, rule: str) -> None:
    value = getattr(plan, name)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not least <= value <= _LONGEST:
        raise _refusal(name, value, rule)


def _check_order(plan: TaskPlan) -> None:
    known = [
        (name, getattr(plan, name))
        for name in ("p50_ms", "p95_ms", "p99_ms")
        if getattr(plan, name) is not None
    ]
    for (lower, low), (higher, high) in pairwise(known):
        if low > high:
            raise _refusal(lower, low, f"can't be above {higher}, which is {high:g}")


def _refusal(name: str, value: object, rule: str) -> PlanFileError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return PlanFileError(f"{name} is {shown}; it {rule}; {_REMEDY}.")

"""What an action did to each of its rows and what it skipped: committed one by one, logged, and said in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.db import transaction

from tasks_app import conf

T = TypeVar("T")
# More names than this make a message nobody reads; the log has them all.
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Steered:
    """What became of one row: `did`, a sentence about `{them}`, or `skipped`, the reason why nothing was done.

    `new_id` is the task that came of it.
    """

    name: str
    did: str = ""
    skipped: str = ""
    new_id: UUID | None = None

    @property
    def log_line(self) -> str:
        """What the admin's log says about it."""
        said = self.did.format(them="it")
        return f"{said} as {self.new_id}." if self.new_id else f"{said}."

    @property
    def label(self) -> str:
        """The row's name, with the task that came of it."""
        return f"{self.name} as {self.new_id}" if self.new_id else self.name


def steer(
    rows: Iterable[T], verb: Callable[[T], Steered], log: Callable[[T, str], object]
) -> list[Steered]:
    """Do `verb` to each row; what was done is committed together with its line in the log."""
    results = []
    for row in rows:
        with transaction.atomic(using=conf.current().DATABASE):
            steered = verb(row)
            if steered.did:
                log(row, steered.log_line)
        results.append(steered)
    return results


def account(results: Iterable[Steered], noun: str) -> Iterator[tuple[bool, str]]:
    """Sentences that say what was done and what was skipped and why; each with: was it done?"""
    groups: dict[tuple[str, str], list[str]] = {}
    for steered in results:
        groups.setdefault((steered.did, steered.skipped), []).append(steered.label)
    for (did, skipped), labels in groups.items():
        them = counted(len(labels), noun)
        said = did.format(them=them) if did else f"Skipped {them}, {skipped}"
        yield bool(did), f"{said}: {_some(labels)}."


def counted(count: int, noun: str) -> str:
    """1 task, 2 tasks."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _some(labels: list[str]) -> str:
    named = ", ".join(labels[:_NAMED])
    return named if len(labels) <= _NAMED else f"{named} and {len(labels) - _NAMED} more"

"""What the bridge says to the hubs, and how hints are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

# 32 hexadecimal digits, a colon and a version. An exception for each comma of a flood would freeze the process.
_SHORTEST_HINT = 34
_TYPE = "asyncpoll.wakeup"
ANYWHERE = ""
"""Stands for every queue where names of queues do: none has an empty name."""
_INBOX = "inbox:"
_TOKEN = "token:"  # noqa: S105 - the word before an id


def group_of(database: str) -> str:
    """The group for wake-ups of one database: Redis tells apart neither its own databases' channels nor our projects."""
    return f"asyncpoll.wakeups.{database}"


@dataclass(frozen=True, slots=True)
class Message:
    """One publication of the bridge. `hints` is `id:version,…`; `beat` certifies every commit before it.

    `queues` are those that may have work.
    """

    epoch: int
    sequence: int
    beat: bool
    hints: str
    queues: tuple[str, ...] = ()

    def pack(self) -> dict[str, Any]:
        """As a channel-layer message."""
        return {
            "type": _TYPE,
            "epoch": self.epoch,
            "sequence": self.sequence,
            "beat": self.beat,
            "hints": self.hints,
            "queues": list(self.queues),
        }


def unpack(raw: dict[str, Any]) -> Message | None:
    """The message in `raw`, or None where it is not one of ours."""
    try:
        if raw["type"] != _TYPE:
            return None
        return Message(
            int(raw["epoch"]),
            int(raw["sequence"]),
            bool(raw["beat"]),
            str(raw["hints"]),
            tuple(str(queue) for queue in raw.get("queues", ())),
        )
    except (KeyError, TypeError, ValueError):
        return None


def hints(text: str) -> Iterator[tuple[UUID, int]]:
    """The (task, version) pairs in `text`; what is not one is passed over. Version 0 means deleted."""
    for item in text.split(","):
        if len(item) < _SHORTEST_HINT:
            continue
        identity, _, version = item.partition(":")
        try:
            yield UUID(identity), int(version)
        except ValueError:
            continue


def token_hints(text: str) -> list[str]:
    """The ids of tokens that have changed, in `text`."""
    return _named(text, _TOKEN)


def inbox_hints(text: str) -> list[str]:
    """The keys of inboxes that have something new, in `text`."""
    return _named(text, _INBOX)


def _named(text: str, word: str) -> list[str]:
    if word not in text:
        return []
    return [item.removeprefix(word) for item in text.split(",") if item.startswith(word)]

"""Verbs about the session that they run in, for its owner."""

from __future__ import annotations

from tasks_app.store.call import Call


def backend() -> Call[int]:
    """The server process that answers. Never prepared: a pooler may have put another one in its place."""
    return Call("backend", {}, lambda rows: int(rows[0][0]), prepare=False)


def echo(channel: str) -> Call[None]:
    """Notify `channel` of nothing, for a session that listens to it itself."""
    return Call("echo", {"channel": channel}, lambda rows: None)


def harden(idle_milliseconds: int) -> Call[None]:
    """Have the server notice the death of this session's client, and end the session when it is idle for so long."""
    return Call("harden", {"idle_milliseconds": idle_milliseconds}, lambda rows: None)


def favour_indexes() -> Call[None]:
    """Plan every statement of this session by its indexes, and compile none."""
    return Call("favour_indexes", {}, lambda rows: None, prepare=False)

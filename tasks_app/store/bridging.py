"""The verbs of the bridge's election, all of them for a session's own connection."""

from __future__ import annotations

from tasks_app.store.call import Call


def lead() -> Call[tuple[bool, int | None]]:
    """Try to become the bridge, once. Gives whether this session is, and the server process of the one that is.

    Not for a session that leads already: the lock would have to be given back twice.
    """
    return Call("lead", {}, lambda rows: (rows[0][0], rows[0][1]))


def depose(process: int) -> Call[bool]:
    """End the server process `process`, if it is still the bridge's. Gives whether it was."""
    return Call("depose", {"pid": process}, lambda rows: bool(rows))


def new_epoch() -> Call[int]:
    """A number larger than any epoch before it."""
    return Call("new_epoch", {}, lambda rows: int(rows[0][0]))


def identify() -> Call[str]:
    """A name for this database that no other one has, however it is reached."""
    return Call("identify", {}, lambda rows: f"{rows[0][0]}.{rows[0][1]}")

"""Names on a command line."""

from __future__ import annotations

from argparse import ArgumentTypeError

from tasks_app.limits import MAX_NAME_LENGTH


def name(text: str) -> str:
    """The name of an owner, or a label. Raises ArgumentTypeError."""
    if len(text) > MAX_NAME_LENGTH or not text.isprintable():
        raise ArgumentTypeError(f"{text!r} is not at most {MAX_NAME_LENGTH} printable characters")
    return text

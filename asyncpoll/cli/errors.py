"""What ends a command early. Each message is the one line that is printed."""

from __future__ import annotations


class UsageError(Exception):
    """The command can't be carried out as it was given. Names the value, the rule and the remedy."""


class GaveUp(Exception):
    """A wait ended before its task did. Says how to go on."""

"""What can go wrong with the embedded Postgres, in one sentence with its remedy."""

from __future__ import annotations


class EmbeddedError(RuntimeError):
    """The embedded Postgres can't be used here. The message says why and what to do instead."""

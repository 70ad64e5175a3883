"""What stops a benchmark."""

from __future__ import annotations


class BenchError(Exception):
    """A benchmark can't go on; the message says why and what to do."""

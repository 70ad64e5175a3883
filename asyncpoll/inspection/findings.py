"""What an inspection can find, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["changed", "missing", "unlisted", "unmet", "duplicate", "invalid", "unchecked"]
"""
changed, missing: the disk differs from RECORD. unlisted: on the disk, in no RECORD.
unmet: a requirement that the installed versions do not satisfy. duplicate: a copy that another
hides. invalid: metadata that breaks its specification. unchecked: what could not be judged.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about a distribution: `subject` is a file, a requirement or a piece of metadata."""

    kind: Kind
    subject: str
    reason: str


def reason_of(error: Exception) -> str:
    """Say why something failed, without the absolute path that an `OSError` carries."""
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__

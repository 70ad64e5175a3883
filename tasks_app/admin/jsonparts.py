"""JSON text for readers: indented without being parsed, also where there is only its beginning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# Deeper nesting is no longer indented: a value of 10,000 brackets would else become megabytes of spaces.
_DEEPEST_INDENT = 40

PART: Final = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'  # a string, or the part of it before the cut
    r"|\[\s*\]|\{\s*\}|[\[\]{}:,]"
    r'|[^\s\[\]{}:,"]+',
    re.DOTALL,
)
"""What JSON text is made of, besides white space."""


def readable(text: str) -> str:
    """JSON text, indented. Takes the beginning of a text as well, and never recurses or parses numbers."""
    return "".join(_indented(text))


def _indented(text: str) -> Iterator[str]:
    depth = 0
    for part in PART.findall(text):
        match part:
            case "[" | "{":
                depth += 1
                yield part + _line(depth)
            case "]" | "}":
                depth -= 1
                yield _line(depth) + part
            case ",":
                yield part + _line(depth)
            case ":":
                yield ": "
            case _:
                yield part


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, _DEEPEST_INDENT)

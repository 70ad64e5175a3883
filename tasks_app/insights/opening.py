"""Measurements as text, however they were written: packed by gzip, with a byte order mark, with bytes that are no text."""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, TextIO

from tasks_app.insights.reading import Refused

_GZIP: Final = b"\x1f\x8b"
# What PowerShell redirects into a file.
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextmanager
def opened(name: str) -> Iterator[TextIO]:
    """The text of a file, or of stdin for `-`. Raises Refused for what can't be opened or unpacked, and OSError."""
    if name != "-":
        with _opened(name) as raw:
            yield from _text(name, raw)
    elif sys.stdin is None:
        raise Refused("stdin is closed; name a FILE.")
    else:
        yield from _text("stdin", sys.stdin.buffer)


def _opened(name: str) -> IO[bytes]:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise Refused(
            f"{name} can't be read ({error.strerror}); name a file with measurements, or - for stdin."
        ) from None


def _text(name: str, raw: Any) -> Iterator[TextIO]:
    begins = raw.peek(2)[:2]
    encoding = "utf-16" if begins in _UTF16 else "utf-8-sig"
    unpacked = gzip.GzipFile(fileobj=raw) if begins == _GZIP else raw
    text = io.TextIOWrapper(unpacked, encoding=encoding, errors="replace")
    try:
        yield text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"{name} can't be unpacked ({error}); is it whole?") from None
    finally:
        # Or it would close stdin.
        text.detach()

"""Stage 3: the files on disk against what RECORD says of them."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import stat
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from asyncpoll.inspection.findings import Finding, reason_of
from asyncpoll.inspection.gather import Entry, Installed

ALGORITHMS = frozenset({"sha256", "sha384", "sha512"})


def checkable(installed: Installed) -> list[Entry]:
    """Leave out bytecode without a hash: Python writes and drops that as it likes."""
    return [entry for entry in installed.entries if entry.digest or not is_bytecode(entry.path)]


def verify(entry: Entry, location: Path) -> Iterator[Finding]:
    """Compare one file with its line in RECORD; yields nothing if they agree."""
    path = absolute(entry.path, location)
    if _prefix(location) not in path.parents:
        yield Finding("unchecked", entry.path, "lies outside the installation")
        return
    try:
        if difference := _difference(entry, path):
            yield Finding("changed", entry.path, difference)
        elif entry.digest and _algorithm(entry) not in ALGORITHMS:
            reason = f"its hash is not one of {', '.join(sorted(ALGORITHMS))}"
            yield Finding("unchecked", entry.path, reason)
    except (FileNotFoundError, NotADirectoryError):
        yield Finding("missing", entry.path, "listed in RECORD, not on the disk")
    except (OSError, ValueError) as error:
        yield Finding("unchecked", entry.path, reason_of(error))


def absolute(listed: str, location: Path) -> Path:
    """Locate what RECORD lists; by its words alone, following no link."""
    return Path(os.path.normpath(location / listed))


def is_bytecode(path: str) -> bool:
    """Whether Python may write and remove this file as it likes."""
    return path.endswith((".pyc", ".pyo")) or "__pycache__" in path.split("/")


def _difference(entry: Entry, path: Path) -> str:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if entry.size is not None and entry.size != found.st_size:
        return f"has {found.st_size} bytes, RECORD says {entry.size}"
    algorithm, expected = _algorithm(entry), entry.digest.partition("=")[2].rstrip("=")
    if algorithm in ALGORITHMS and _digest(path, algorithm) != expected:
        return f"its {algorithm} differs from RECORD"
    return ""


def _algorithm(entry: Entry) -> str:
    return entry.digest.partition("=")[0]


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, algorithm).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


@functools.cache
def _prefix(location: Path) -> Path:
    """Name the directory an installation at `location` may write below.

    In site-packages that is as many levels up as in this Python: its scripts are listed there as
    ../../../bin/x. Anywhere else it is the location itself. What a RECORD lists beyond is not read.
    """
    if location.name not in ("site-packages", "dist-packages"):
        return location
    climb = os.path.relpath(sysconfig.get_path("data"), sysconfig.get_path("purelib"))
    return absolute(climb, location)

"""Stage 3: files in a distribution's directories that no RECORD lists."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from packaging.utils import canonicalize_name

from asyncpoll.inspection.files import absolute, is_bytecode
from asyncpoll.inspection.findings import Finding, reason_of
from asyncpoll.inspection.gather import Installed

SIGNATURES = frozenset({"RECORD.jws", "RECORD.p7s"})  # of RECORD itself, which so can't list them


def _owners() -> defaultdict[Path, set[str]]:
    return defaultdict(set)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Names of distributions, by absolute path of what they list and of the directories above it.

    `roots` are, for each, the topmost directories in which it lists a file directly: the root of
    zope.interface is zope/interface, and a bare namespace is nobody's.
    """

    files: defaultdict[Path, set[str]] = field(default_factory=_owners)
    directories: defaultdict[Path, set[str]] = field(default_factory=_owners)
    roots: defaultdict[Path, set[str]] = field(default_factory=_owners)


def own(everything: Iterable[Installed]) -> Ownership:
    """Index all distributions, so that none is blamed for another's files."""
    ownership = Ownership()
    for installed in everything:
        owner = canonicalize_name(installed.name)
        paths = {absolute(c, installed.location) for c in installed.claims if not is_bytecode(c)}
        for path in paths:
            ownership.files[path].add(owner)
        direct = {path.parent for path in paths}
        for directory in direct:
            within = _within(installed.location, directory)
            for one in within:
                ownership.directories[one].add(owner)
            if within and direct.isdisjoint(within[1:]):
                ownership.roots[directory].add(owner)
    return ownership


def unlisted(installed: Installed, ownership: Ownership) -> Iterator[Finding]:
    """Find files below the distribution's roots that are in no RECORD; bytecode is ignored.

    Where others list files too, the one whose root is above theirs answers for what is unlisted
    (twisted/plugins is Twisted's, whoever adds to it). With equal roots nobody does: it may belong
    to another sharer of the namespace, one that keeps no RECORD.
    """
    if not installed.entries:
        return
    owner, location = canonicalize_name(installed.name), installed.location
    errors: list[OSError] = []
    for root, owners in ownership.roots.items():
        if owner not in owners or location not in root.parents:
            continue
        above = _within(location, root)[1:]
        first = owners == {owner} and ownership.roots.keys().isdisjoint(above)
        for path in _answered_for(root, owner, first, ownership, errors):
            if path not in ownership.files and path not in ownership.directories:
                subject = path.relative_to(location).as_posix()
                yield Finding("unlisted", subject, "on the disk, in no RECORD")
    for error in errors:
        # Where no directory is left, its files were found missing.
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            subject = Path(error.filename).relative_to(location).as_posix()
            yield Finding("unchecked", subject, reason_of(error))


def _answered_for(
    root: Path, owner: str, first: bool, ownership: Ownership, errors: list[OSError]
) -> Iterator[Path]:
    """Yield the files, and links to directories, that the distribution answers for.

    `first`: no other's root is at or above this one, so that it answers where others list as well.
    """
    for folder, directories, files in os.walk(root, onerror=errors.append):
        here = Path(folder)
        owners = ownership.directories.get(here, {owner})
        answers = first or owners == {owner}
        unknown = {owner} if answers else set()
        directories[:] = [
            name
            for name in directories
            if name != "__pycache__" and owner in ownership.directories.get(here / name, unknown)
        ]
        if answers:
            links = [name for name in directories if (here / name).is_symlink()]
            names = {*files, *links} - (SIGNATURES if here.suffix == ".dist-info" else set())
            yield from (here / name for name in names if not is_bytecode(name))


def _within(location: Path, directory: Path) -> list[Path]:
    """List the directory and those above it, up to the location and without it; [] if outside."""
    if location not in directory.parents:
        return []
    return list(takewhile(lambda one: one != location, (directory, *directory.parents)))

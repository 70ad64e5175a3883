"""Stage 3: files in a distribution's directories that no RECORD lists."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name

from asyncpoll.inspection.files import is_below, is_bytecode
from asyncpoll.inspection.findings import Finding, reason_of
from asyncpoll.inspection.gather import Installed

UNLISTABLE = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s"})  # RECORD can't list its signatures


def _owners() -> defaultdict[str, set[str]]:
    return defaultdict(set)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Names of distributions, by absolute path of what they list and of the directories above it.

    `roots` are, for each, the topmost directories in which it lists a file directly: the root of
    zope.interface is zope/interface, and a bare namespace is nobody's.
    """

    files: defaultdict[str, set[str]] = field(default_factory=_owners)
    directories: defaultdict[str, set[str]] = field(default_factory=_owners)
    roots: defaultdict[str, set[str]] = field(default_factory=_owners)


def own(everything: Iterable[Installed]) -> Ownership:
    """Index all distributions, so that none is blamed for another's files."""
    ownership = Ownership()
    for installed in everything:
        owner = canonicalize_name(installed.name)
        for path in _claimed(installed):
            ownership.files[path].add(owner)
            for directory in _parents(path, installed.location):
                ownership.directories[directory].add(owner)
        for root in _roots(installed):
            ownership.roots[root].add(owner)
    return ownership


def unlisted(installed: Installed, ownership: Ownership) -> Iterator[Finding]:
    """Find files below the distribution's roots that are in no RECORD; bytecode is ignored.

    Where others list files too, the one whose root is above theirs answers for what is unlisted
    (twisted/plugins is Twisted's, whoever adds to it). With equal roots nobody does: it may belong
    to another sharer of the namespace, one that keeps no RECORD.
    """
    if not installed.entries:
        return
    errors: list[OSError] = []
    for root in _roots(installed):
        for path in _answered_for(root, installed, ownership, errors):
            if not (path in ownership.files or path in ownership.directories):
                yield Finding("unlisted", _relative(path, installed), "on the disk, in no RECORD")
    for error in errors:
        if not isinstance(error, FileNotFoundError):  # then its files were found missing
            yield Finding("unchecked", _relative(error.filename, installed), reason_of(error))


def _answered_for(
    root: str, installed: Installed, ownership: Ownership, errors: list[OSError]
) -> Iterator[str]:
    """Yield the files, and links to directories, that the distribution answers for."""
    owner = canonicalize_name(installed.name)
    first = ownership.roots[root] == {owner} and ownership.roots.keys().isdisjoint(
        _parents(root, installed.location)
    )
    strangers: set[str] = set()
    for here, directories, files in os.walk(root, onerror=errors.append):
        owners = ownership.directories.get(here, {owner})
        answers = first or owners == {owner}
        unknown = {owner} if answers else strangers
        directories[:] = [
            name
            for name in directories
            if name != "__pycache__"
            and owner in ownership.directories.get(os.path.join(here, name), unknown)
        ]
        if answers:
            links = [name for name in directories if os.path.islink(os.path.join(here, name))]
            names = set(files).union(links) - UNLISTABLE
            yield from (os.path.join(here, name) for name in names if not is_bytecode(name))


def _claimed(installed: Installed) -> Iterator[str]:
    for claim in installed.claims:
        if not is_bytecode(claim):
            yield os.path.normpath(os.path.join(installed.location, claim))


def _parents(path: str, location: str) -> Iterator[str]:
    """Yield the directories of `path` below `location`, the nearest first."""
    directory = os.path.dirname(path)
    while is_below(location, directory):
        yield directory
        directory = os.path.dirname(directory)


def _roots(installed: Installed) -> list[str]:
    direct = {os.path.dirname(path) for path in _claimed(installed)}
    return sorted(
        directory
        for directory in direct
        if is_below(installed.location, directory)
        and direct.isdisjoint(_parents(directory, installed.location))
    )


def _relative(path: str, installed: Installed) -> str:
    return os.path.relpath(path, installed.location).replace(os.sep, "/")

"""Stage 3: which requirements the installed versions leave unmet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from asyncpoll.inspection.findings import Finding
from asyncpoll.inspection.gather import Installed

Known = Mapping[str, Installed]
"""All that is installed, by normalised name."""


def unmet(installed: Installed, known: Known) -> Iterator[Finding]:
    """Find requirements that apply here and are absent or at the wrong version.

    Extras count where a requirement asks for them ("redis[hiredis]"), however deep. Those that
    somebody chose when installing this distribution itself are recorded nowhere and can't count.
    """
    yield from _unmet(installed, "", "", known, set())


def _unmet(
    installed: Installed, extra: str, through: str, known: Known, seen: set[tuple[Path, str]]
) -> Iterator[Finding]:
    for text in installed.requires:
        try:
            requirement = Requirement(text)
            if not _applies(requirement, extra):
                continue
        except InvalidRequirement:
            if not extra:
                yield Finding("invalid", text, "not a requirement as PEP 508 writes them")
            continue
        except ValueError:
            yield Finding("unchecked", text, "its marker can't be evaluated here")
            continue
        yield from _check(requirement, through, known, seen)


def _applies(requirement: Requirement, extra: str) -> bool:
    """Whether it applies because of `extra`, or with "" whether it always does."""
    marker = requirement.marker
    always = marker is None or marker.evaluate({"extra": ""})
    if not extra:
        return always
    return not always and marker is not None and marker.evaluate({"extra": extra})


def _check(
    requirement: Requirement, through: str, known: Known, seen: set[tuple[Path, str]]
) -> Iterator[Finding]:
    """Judge one requirement that applies, then what its extras bring with them."""
    subject = f"{requirement.name}{requirement.specifier}{through}"
    target = known.get(canonicalize_name(requirement.name))
    if target is None:
        yield Finding("unmet", subject, "not installed")
        return
    try:
        # pip installs a pre-release only when asked to, and then counts it as good.
        if not requirement.specifier.contains(Version(target.version), prereleases=True):
            yield Finding("unmet", subject, f"{target.version} is installed")
    except InvalidVersion:
        yield Finding("unchecked", subject, f"installed version {target.version!r} is not PEP 440")
    for extra in sorted(requirement.extras):
        if (target.info, extra) not in seen:
            seen.add((target.info, extra))
            via = f" (through {requirement.name}[{extra}])"
            yield from _unmet(target, extra, via, known, seen)

"""Stage 2: one name per distribution, and which of several copies Python uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from asyncpoll.inspection.findings import Finding
from asyncpoll.inspection.gather import Installed


def by_name(everything: Iterable[Installed]) -> dict[str, list[Installed]]:
    """Group by the name as PEP 503 normalises it; the first of each is the one Python uses.

    The same directory found by two ways (lib64 linked to lib) counts once.
    """
    copies: dict[str, dict[Path, Installed]] = {}
    for one in everything:
        copies.setdefault(canonicalize_name(one.name), {}).setdefault(one.info, one)
    return {name: list(found.values()) for name, found in copies.items()}


def duplicates(copies: list[Installed]) -> Iterator[Finding]:
    """Find the copies that the first one hides."""
    for hidden in copies[1:]:
        subject = f"{hidden.name} {hidden.version}"
        yield Finding("duplicate", subject, f"installed as well, hidden by {copies[0].version}")

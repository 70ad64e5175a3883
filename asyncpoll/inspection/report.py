"""Stage 4: all findings as JSON, bounded in size, saying what the bound left out."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from asyncpoll.inspection.findings import KINDS, Finding
from asyncpoll.inspection.licences import Licence

FINDINGS_EACH = 50
DETAILED_BYTES = 300_000  # beyond it distributions are listed with counts only
LISTED_BYTES = 600_000  # beyond it they are only counted; results end at 1 MiB, with much to spare
TEXT_LENGTH = 200  # characters of any one text
LICENCES = 50


@dataclass(frozen=True, slots=True)
class Inspected:
    """A distribution: normalised name and licence, number of files it lists, and the findings.

    Bytecode that RECORD lists without a hash is not counted among the files.
    """

    name: str
    version: str
    licence: Licence
    files: int
    findings: tuple[Finding, ...]


def assemble(inspected: Sequence[Inspected], found: int) -> dict[str, Any]:
    """Build the report on `inspected`, out of `found` distributions.

    Counts are always complete. `truncated` is empty, or says in sentences what is not shown.
    """
    listed: list[dict[str, Any]] = []
    room = LISTED_BYTES
    for one in inspected:
        entry = _entry(one, FINDINGS_EACH)
        if room - _size(entry) < LISTED_BYTES - DETAILED_BYTES:
            entry = _entry(one, 0)
        if _size(entry) <= room:
            listed.append(entry)
            room -= _size(entry)
    return {
        "summary": _summary(inspected, found),
        "distributions": listed,
        "truncated": _left_out(inspected, listed, found),
    }


def printable(text: str) -> str:
    """Make any text, say an undecodable file name, storable as JSON and of bounded length."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: TEXT_LENGTH + 1])
    return text if len(text) <= TEXT_LENGTH else f"{text[: TEXT_LENGTH - 1]}…"


def _entry(one: Inspected, at_most: int) -> dict[str, Any]:
    ordered = sorted(one.findings, key=lambda f: (KINDS.index(f.kind), f.subject))
    return {
        "name": printable(one.name),
        "version": printable(one.version),
        "licence": printable(one.licence.identifier) or None,
        "licence_field": one.licence.field or None,
        "licence_stated": printable(one.licence.stated) or None,
        "files_listed": one.files,
        "counts": _counts(one.findings),
        "findings": [
            {"kind": f.kind, "subject": printable(f.subject), "reason": printable(f.reason)}
            for f in ordered[:at_most]
        ],
    }


def _summary(inspected: Sequence[Inspected], found: int) -> dict[str, Any]:
    licences = Counter(printable(one.licence.identifier) or "unknown" for one in inspected)
    return {
        "python": platform.python_version(),
        "distributions_found": found,
        "distributions_inspected": len(inspected),
        "without_findings": sum(not one.findings for one in inspected),
        "files_listed": sum(one.files for one in inspected),
        "counts": dict.fromkeys(KINDS, 0) | _counts(f for one in inspected for f in one.findings),
        "licences": dict(licences.most_common(LICENCES)),
    }


def _left_out(
    inspected: Sequence[Inspected], listed: list[dict[str, Any]], found: int
) -> list[str]:
    shown = sum(len(entry["findings"]) for entry in listed)
    licences = {one.licence.identifier for one in inspected}
    left_out = {
        "{} distributions were not inspected: the limit was reached": found - len(inspected),
        "{} distributions are counted but not listed": len(inspected) - len(listed),
        "{} findings are counted but not shown": sum(len(i.findings) for i in inspected) - shown,
        "{} rarer licences are not counted": len(licences) - LICENCES,
    }
    return [sentence.format(number) for sentence, number in left_out.items() if number > 0]


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    return dict(Counter(f.kind for f in findings))


def _size(entry: dict[str, Any]) -> int:
    return len(json.dumps(entry))

"""What stages 1 and 2 found, as JSON of bounded size, so that it can be kept while later stages run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

from asyncpoll.inspection.findings import Finding
from asyncpoll.inspection.gather import Installed
from asyncpoll.inspection.licences import Licence

KEPT_BYTES = 600_000  # beyond it requirements are left out; some 1,500 names more fit into 1 MiB
TEXT_LENGTH = 1_000  # a name, a version or a requirement is shorter, a licence's whole text longer


@dataclass(frozen=True, slots=True)
class Judged:
    """What stage 2 says of one distribution."""

    licence: Licence
    findings: tuple[Finding, ...]


def pack(everything: Iterable[Installed]) -> list[dict[str, Any]]:
    """Stage 1 as JSON. Requirements that find no room are left out, with a finding that says so."""
    packed = []
    room = KEPT_BYTES
    for one in everything:
        row = _row(one)
        if _size(row) > room and row["requires"]:
            reason = f"{len(row['requires'])} requirements were not checked: too many to keep"
            row["findings"].append(asdict(Finding("unchecked", "METADATA", reason)))
            row["requires"] = []
        packed.append(row)
        room -= _size(row)
    return packed


def unpack(packed: Iterable[Mapping[str, Any]]) -> list[Installed]:
    """Undo `pack`."""
    return [
        Installed(
            name=row["name"],
            version=row["version"],
            location=_path(row["location"]),
            info=_path(row["info"]),
            licence_expression=row["licence_expression"],
            licence=row["licence"],
            classifiers=tuple(row["classifiers"]),
            requires=tuple(row["requires"]),
            findings=_findings(row["findings"]),
        )
        for row in packed
    ]


def pack_judged(judged: Mapping[str, Judged]) -> dict[str, Any]:
    """Stage 2 as JSON."""
    return {
        name: {
            "licence": {key: _text(value) for key, value in asdict(one.licence).items()},
            "findings": _rows(one.findings),
        }
        for name, one in judged.items()
    }


def unpack_judged(packed: Mapping[str, Any]) -> dict[str, Judged]:
    """Undo `pack_judged`."""
    return {
        name: Judged(Licence(**one["licence"]), _findings(one["findings"]))
        for name, one in packed.items()
    }


def _row(one: Installed) -> dict[str, Any]:
    return {
        "name": _text(one.name),
        "version": _text(one.version),
        "location": _quoted(one.location),
        "info": _quoted(one.info),
        "licence_expression": _text(one.licence_expression),
        "licence": _text(one.licence),
        "classifiers": [_text(classifier) for classifier in one.classifiers],
        "requires": [_text(requirement) for requirement in one.requires],
        "findings": _rows(one.findings),
    }


def _rows(findings: Iterable[Finding]) -> list[dict[str, str]]:
    return [{key: _text(value) for key, value in asdict(one).items()} for one in findings]


def _findings(rows: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    return tuple(Finding(**row) for row in rows)


def _text(text: str) -> str:
    """Cut to what is kept, and without what JSON in a database can't hold: NUL and lone surrogates."""
    cut = text[:TEXT_LENGTH].replace("\0", "\\x00")
    return cut.encode("utf-8", "backslashreplace").decode()


def _quoted(path: Path) -> str:
    """A path need not be text: percent-encoded, it can be kept and found again."""
    return quote_from_bytes(os.fsencode(path))


def _path(quoted: str) -> Path:
    return Path(os.fsdecode(unquote_to_bytes(quoted)))


def _size(row: Mapping[str, Any]) -> int:
    return len(json.dumps(row))

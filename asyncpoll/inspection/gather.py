"""Stage 1: what each installed distribution says about itself. Its RECORD is read in stage 3, with the files."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

from asyncpoll.inspection.findings import Finding, reason_of

LICENCES = "License :: "  # how the classifiers begin that matter here


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of RECORD: a path relative to the location, `algorithm=digest` or "", bytes."""

    path: str
    digest: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Installed:
    """A distribution as found: nothing in it has been judged yet, save what could not be read.

    `location` is the directory that RECORD's paths start from, `info` the real path of its
    metadata. `entries` and `claims` are empty until `with_record` has read them; `claims` are the
    paths it owns: those of RECORD, or for want of one, of older lists.
    """

    name: str
    version: str
    location: Path
    info: Path
    licence_expression: str = ""
    licence: str = ""
    classifiers: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    claims: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def gather(distribution: Distribution) -> Installed:
    """Read the metadata of one distribution; never raises for a broken one."""
    findings: list[Finding] = []
    location = Path(os.path.normpath(Path(str(distribution.locate_file(""))).absolute()))
    # Only the private attribute knows the directory's name, which is all that is left to go by
    # when METADATA can't be read.
    info = Path(str(getattr(distribution, "_path", location)))
    name, version = _named_by_directory(info)
    fields = _metadata(distribution, findings)
    return Installed(
        name=_first(fields, "Name") or name,
        version=_first(fields, "Version") or version,
        location=location,
        info=Path(os.path.realpath(info)),
        licence_expression=_first(fields, "License-Expression"),
        licence=_first(fields, "License"),
        classifiers=tuple(c for c in fields.get("Classifier", ()) if c.startswith(LICENCES)),
        requires=tuple(fields.get("Requires-Dist", ())),
        findings=tuple(findings),
    )


def is_build_output(distribution: Distribution) -> bool:
    """Whether it is what a build left in the working directory, such as a checkout, and no installation."""
    info = Path(str(getattr(distribution, "_path", "")))
    try:
        return info.suffix == ".egg-info" and info.parent.samefile(".")
    except OSError:
        return False


def with_record(installed: Installed) -> Installed:
    """Add what its RECORD lists, and findings that say why its files can't be checked."""
    distribution = PathDistribution(installed.info)
    findings: list[Finding] = []
    entries = _entries(distribution, installed.location, findings)
    return replace(
        installed,
        entries=entries,
        claims=tuple(entry.path for entry in entries) or _older_claims(distribution),
        findings=(*installed.findings, *findings),
    )


def parse_record(text: str) -> tuple[Entry, ...]:
    """Parse RECORD; lines with too few columns count as having neither hash nor size.

    Raises `csv.Error` if it is not CSV.
    """
    rows = ([*row, "", ""] for row in csv.reader(io.StringIO(text)) if row and row[0])
    entries = (Entry(path, digest, _size(size)) for path, digest, size, *_ in rows)
    return tuple({entry.path: entry for entry in entries}.values())


def _size(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _named_by_directory(info: Path) -> tuple[str, str]:
    name, _, rest = info.stem.partition("-")
    return name or "unknown", rest.partition("-")[0] or "unknown"


def _first(fields: dict[str, list[str]], field: str) -> str:
    return next(iter(fields.get(field, ())), "").strip()


def _metadata(distribution: Distribution, findings: list[Finding]) -> dict[str, list[str]]:
    """Read the fields that matter here; what can't be read becomes a finding."""
    try:
        if not any(distribution.read_text(name) for name in ("METADATA", "PKG-INFO", "")):
            findings.append(Finding("unchecked", "METADATA", "missing, empty or unreadable"))
            return {}
        message = distribution.metadata
        fields = {
            field: [str(value) for value in message.get_all(field) or ()]
            for field in ("Name", "Version", "License-Expression", "License", "Classifier")
        }
        return {**fields, "Requires-Dist": list(distribution.requires or ())}
    except (OSError, ValueError) as error:
        findings.append(Finding("unchecked", "METADATA", reason_of(error)))
        return {}


def _entries(
    distribution: Distribution, location: Path, findings: list[Finding]
) -> tuple[Entry, ...]:
    """Read RECORD; findings say why the files can't be checked, or not all of them."""
    try:
        text = distribution.read_text("RECORD")
        if not location.is_dir():
            reason = "not installed in a directory: its files were not checked"
        elif not text:
            reason = "missing, empty or unreadable: its files were not checked"
        else:
            if _is_editable(distribution):
                reason = "an editable install: RECORD does not list its sources"
                findings.append(Finding("unchecked", "RECORD", reason))
            return parse_record(text)
    except (OSError, ValueError, csv.Error) as error:
        reason = f"{reason_of(error)}: its files were not checked"
    findings.append(Finding("unchecked", "RECORD", reason))
    return ()


def _is_editable(distribution: Distribution) -> bool:
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        return bool(origin["dir_info"]["editable"])
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _older_claims(distribution: Distribution) -> tuple[str, ...]:
    """Paths from egg-info's lists: good enough to tell whose a file is, not to verify it."""
    try:
        return tuple(str(path) for path in distribution.files or ())
    except (OSError, ValueError, TypeError, csv.Error):
        return ()

"""Inspect what is installed in a Python: files against RECORD, requirements, licences.

Reads the disk and nothing else; knows nothing of tasks, Django or the network.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from typing import Any

from asyncpoll.inspection.files import checkable, verify
from asyncpoll.inspection.findings import Finding
from asyncpoll.inspection.gather import Installed, gather
from asyncpoll.inspection.licences import Licence, invalid_expression, licence_of
from asyncpoll.inspection.names import by_name, duplicates
from asyncpoll.inspection.progress import Report, reported
from asyncpoll.inspection.report import Inspected, assemble
from asyncpoll.inspection.requirements import unmet
from asyncpoll.inspection.unlisted import own, unlisted

__all__ = ["inspect"]

Chosen = dict[str, Installed]
Findings = dict[str, list[Finding]]


def inspect(path: Sequence[str] | None, limit: int | None, report: Report) -> dict[str, Any]:
    """Inspect the distributions on `path` (None: on `sys.path`), the first `limit` by name.

    Calls `report(progress, message)` with a progress that never falls and ends at 1.0. Returns
    what `assemble` describes. Raises `ValueError` for a limit that is not a number from 1 up.
    """
    _check_limit(limit)
    everything = _gather(sys.path if path is None else path, report)
    copies = by_name(everything)
    known = {name: first for name, (first, *_) in copies.items()}
    chosen = dict(sorted(known.items())[:limit])
    findings = {name: [*one.findings, *duplicates(copies[name])] for name, one in chosen.items()}
    licences = _normalise_licences(chosen, findings, report)
    _check_files(chosen, findings, report)
    _look_for_unlisted(chosen, everything, findings, report)
    _check_requirements(chosen, known, findings, report)
    return _assemble(chosen, licences, findings, len(known), report)


def _check_limit(limit: object) -> None:
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1):
        return
    raise ValueError(f"limit is {limit!r:.50}: give a whole number from 1 up, or null for all")


def _gather(path: Sequence[str], report: Report) -> list[Installed]:
    found = list(distributions(path=list(path)))
    message = "gathering metadata of {done} of {total} distributions"
    return [gather(one) for one in reported(found, report, (0.0, 0.1), message)]


def _normalise_licences(chosen: Chosen, findings: Findings, report: Report) -> dict[str, Licence]:
    licences = {}
    message = "normalising names and licences of {done} of {total} distributions"
    for name, one in reported(list(chosen.items()), report, (0.1, 0.15), message):
        licences[name] = licence_of(one)
        findings[name] += invalid_expression(one)
    return licences


def _check_files(chosen: Chosen, findings: Findings, report: Report) -> None:
    listed = [(name, entry) for name, one in chosen.items() for entry in checkable(one)]
    message = "checking {done} of {total} files"
    for name, entry in reported(listed, report, (0.15, 0.85), message):
        findings[name] += verify(entry, chosen[name].location)


def _look_for_unlisted(
    chosen: Chosen, everything: list[Installed], findings: Findings, report: Report
) -> None:
    ownership = own(everything)
    message = "looking for unlisted files in {done} of {total} distributions"
    for name, one in reported(list(chosen.items()), report, (0.85, 0.92), message):
        findings[name] += unlisted(one, ownership)


def _check_requirements(chosen: Chosen, known: Chosen, findings: Findings, report: Report) -> None:
    message = "checking requirements of {done} of {total} distributions"
    for name, one in reported(list(chosen.items()), report, (0.92, 0.97), message):
        findings[name] += unmet(one, known)


def _assemble(
    chosen: Chosen, licences: dict[str, Licence], findings: Findings, found: int, report: Report
) -> dict[str, Any]:
    inspected = [
        Inspected(name, one.version, licences[name], len(checkable(one)), tuple(findings[name]))
        for name, one in chosen.items()
    ]
    report(0.97, f"assembling the report on {len(inspected)} distributions")
    result = assemble(inspected, found)
    clean = result["summary"]["without_findings"]
    report(1.0, f"inspected {len(inspected)} distributions, {clean} without findings")
    return result

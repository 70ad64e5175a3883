"""Inspect what is installed in a Python: files against RECORD, requirements, licences.

Reads the disk and nothing else; knows nothing of tasks, Django or the network.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import distributions
from typing import Any

from asyncpoll.inspection.files import checkable, verify
from asyncpoll.inspection.findings import Finding
from asyncpoll.inspection.gather import Installed, gather, is_build_output, with_record
from asyncpoll.inspection.licences import invalid_expression, licence_of
from asyncpoll.inspection.names import by_name, duplicates
from asyncpoll.inspection.packing import Judged, pack, pack_judged, unpack, unpack_judged
from asyncpoll.inspection.progress import Report, Walk
from asyncpoll.inspection.report import Inspected, assemble
from asyncpoll.inspection.requirements import unmet
from asyncpoll.inspection.unlisted import own, unlisted

__all__ = ["inspect"]

Chosen = dict[str, Installed]
Findings = dict[str, list[Finding]]
Stage = Callable[[], Any]
Take = Callable[[str, Stage], Any]


def _at_once(name: str, stage: Stage) -> Any:
    return stage()


def _go_on() -> None:
    return


def inspect(
    path: Sequence[str] | None,
    limit: int | None,
    report: Report,
    *,
    check: Callable[[], None] = _go_on,
    take: Take = _at_once,
) -> dict[str, Any]:
    """Inspect the distributions on `path` (None: on `sys.path`), the first `limit` by name.

    Calls `report(progress, message)` with a progress that never falls and ends at 1.0, and `check()`
    between items, which may raise to stop. `take(name, stage)` calls the first two stages, "gather"
    and "normalise", or gives what they gave before: JSON of bounded size. Returns what `assemble`
    describes. Raises `ValueError` for a limit that is not a number from 1 up.
    """
    _check_limit(limit)
    walk = Walk(report, check)
    searched = sys.path if path is None else path
    found = unpack(take("gather", partial(_gather, searched, walk)))
    copies = dict(sorted(by_name(found).items())[:limit])
    judged = unpack_judged(take("normalise", partial(_normalise, copies, walk)))
    everything = _read_records(found, walk)
    known = {name: first for name, (first, *_) in by_name(everything).items()}
    chosen = {name: known[name] for name in copies}
    findings = {name: [*one.findings, *judged[name].findings] for name, one in chosen.items()}
    _check_files(chosen, findings, walk)
    _look_for_unlisted(chosen, everything, findings, walk)
    _check_requirements(chosen, known, findings, walk)
    return _assemble(chosen, judged, findings, len(known), report)


def _check_limit(limit: object) -> None:
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1):
        return
    raise ValueError(f"limit is {limit!r:.50}: give a whole number from 1 up, or null for all")


def _gather(path: Sequence[str], walk: Walk) -> list[dict[str, Any]]:
    everything = distributions(path=list(path))
    found = [one for one in everything if not is_build_output(one)]
    message = "gathering metadata of {done} of {total} distributions"
    return pack(gather(one) for one in walk.over(found, (0.0, 0.1), message))


def _normalise(copies: dict[str, list[Installed]], walk: Walk) -> dict[str, Any]:
    judged = {}
    message = "normalising names and licences of {done} of {total} distributions"
    for name, (first, *others) in walk.over(list(copies.items()), (0.1, 0.15), message):
        findings = (*duplicates([first, *others]), *invalid_expression(first))
        judged[name] = Judged(licence_of(first), findings)
    return pack_judged(judged)


def _read_records(found: list[Installed], walk: Walk) -> list[Installed]:
    message = "reading RECORD of {done} of {total} distributions"
    return [with_record(one) for one in walk.over(found, (0.15, 0.2), message)]


def _check_files(chosen: Chosen, findings: Findings, walk: Walk) -> None:
    listed = [(name, entry) for name, one in chosen.items() for entry in checkable(one)]
    message = "checking {done} of {total} files"
    for name, entry in walk.over(listed, (0.2, 0.85), message):
        findings[name] += verify(entry, chosen[name].location)


def _look_for_unlisted(
    chosen: Chosen, everything: list[Installed], findings: Findings, walk: Walk
) -> None:
    ownership = own(everything)
    message = "looking for unlisted files in {done} of {total} distributions"
    for name, one in walk.over(list(chosen.items()), (0.85, 0.92), message):
        findings[name] += unlisted(one, ownership)


def _check_requirements(chosen: Chosen, known: Chosen, findings: Findings, walk: Walk) -> None:
    message = "checking requirements of {done} of {total} distributions"
    for name, one in walk.over(list(chosen.items()), (0.92, 0.97), message):
        findings[name] += unmet(one, known)


def _assemble(
    chosen: Chosen, judged: dict[str, Judged], findings: Findings, found: int, report: Report
) -> dict[str, Any]:
    inspected = [
        Inspected(
            name, one.version, judged[name].licence, len(checkable(one)), tuple(findings[name])
        )
        for name, one in chosen.items()
    ]
    some = "1 distribution" if len(inspected) == 1 else f"{len(inspected)} distributions"
    report(0.97, f"assembling the report on {some}")
    result = assemble(inspected, found)
    clean = result["summary"]["without_findings"]
    report(1.0, f"inspected {some}, {clean} without findings")
    return result

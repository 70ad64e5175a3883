"""Limit, progress and report: bounded, complete in its counts, fit to be stored and shown."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from asyncpoll.inspection import inspect
from asyncpoll.inspection.findings import Finding
from asyncpoll.inspection.licences import Licence
from asyncpoll.inspection.report import FINDINGS_EACH, Inspected, assemble
from tests.unit.inspection.made_up import Site, findings


def test_a_limit_takes_the_first_by_name_and_is_said(site: Site) -> None:
    """What is not inspected is still installed: it meets requirements and owns its files."""
    site.install("b", contents={"shared/b.py": ""})
    site.install("C", contents={})
    site.install("a", contents={"shared/__init__.py": ""}, metadata="Requires-Dist: c\n")
    report = site.inspect(limit=1)
    assert [one["name"] for one in report["distributions"]] == ["a"]
    assert findings(report) == []
    assert report["summary"]["distributions_found"] == 3
    assert report["truncated"] == ["2 distributions were not inspected: the limit was reached"]
    assert len(site.inspect(limit=99)["distributions"]) == 3


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "5", float("nan")])
def test_a_bad_limit_is_refused_with_value_and_rule(site: Site, limit: Any) -> None:
    """The message says what to give instead."""
    with pytest.raises(ValueError, match="give a whole number from 1 up, or null for all") as error:
        site.inspect(limit)
    assert repr(limit) in str(error.value)


@pytest.mark.parametrize("count", [0, 1, 7, 250])
def test_progress_never_falls_and_ends_at_one(site: Site, count: int) -> None:
    """Each stage speaks, in whole numbers of what it walks over."""
    for number in range(count):
        site.install(f"a{number:03}")
    told: list[tuple[float, str]] = []
    inspect([str(site.path)], None, lambda *report: told.append(report))
    progress = [value for value, _ in told]
    assert progress == sorted(progress)
    assert progress[0] == 0.0
    assert progress[-1] == 1.0
    messages = [message for _, message in told]
    for message in (
        f"gathering metadata of {count} of {count} distributions",
        f"normalising names and licences of {count} of {count} distributions",
        f"reading RECORD of {count} of {count} distributions",
        f"checking {3 * count} of {3 * count} files",
        f"looking for unlisted files in {count} of {count} distributions",
        f"checking requirements of {count} of {count} distributions",
        f"assembling the report on {count} distribution{'' if count == 1 else 's'}",
    ):
        assert message in messages


def inspected(name: str, files: int) -> Inspected:
    """A distribution that lost all of so many files."""
    lost = (Finding("missing", f"a/{'long-' * 30}ä{n}.py", "gone") for n in range(files))
    return Inspected(name, "1.0", Licence("MIT", "License", "MIT"), files, tuple(lost))


def test_a_very_bad_installation_stays_well_below_a_mebibyte_and_says_what_is_left_out() -> None:
    """Counts stay complete; what is not shown is counted in a sentence."""
    report = assemble([inspected(f"p{n}", 60) for n in range(500)], 500)
    assert len(json.dumps(report)) < 700_000
    assert report["summary"]["counts"]["missing"] == 500 * 60
    assert [one["counts"] for one in report["distributions"]] == [{"missing": 60}] * 500
    assert len(report["distributions"][0]["findings"]) == FINDINGS_EACH
    assert report["distributions"][-1]["findings"] == []
    hidden = 500 * 60 - len(findings(report))
    assert report["truncated"] == [f"{hidden} findings are counted but not shown"]


def test_more_distributions_than_fit_are_counted_and_said() -> None:
    """The bound holds for any number of them."""
    report = assemble([inspected(f"{'p' * 150}{n}", 1) for n in range(5000)], 5000)
    assert len(json.dumps(report)) < 700_000
    assert report["summary"]["counts"]["missing"] == 5000
    left_out = 5000 - len(report["distributions"])
    assert report["truncated"][0] == f"{left_out} distributions are counted but not listed"


def test_undecodable_names_are_stored_as_plain_text(site: Site) -> None:
    """No lone surrogate, NUL or control character reaches the result; long texts are cut."""
    site.install("a")
    (site.path / os.fsdecode(b"a/\xff\x1b.py")).write_text("")
    site.write(f"a/{'x' * 240}", "")
    subjects = [subject for _, _, subject in site.findings()]
    assert subjects == [f"a/{'x' * 197}…", "a/\\udcff\\x1b.py"]


def test_the_report_names_no_path_of_the_machine(site: Site) -> None:
    """It is read over HTTP by people who need not know where things lie."""
    site.install("a")
    site.write("a/evil.py", "")
    (site.path / "a/__init__.py").unlink()
    assert str(site.path) not in json.dumps(site.inspect())

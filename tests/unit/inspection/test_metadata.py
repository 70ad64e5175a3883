"""Broken distributions, requirements and licences: what metadata leads an inspection to say."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from asyncpoll.inspection import inspect
from tests.unit.inspection.made_up import Site, Triple, findings, reasons


def test_a_distribution_without_record_is_unchecked_and_its_requirements_are_judged(
    site: Site,
) -> None:
    """Old egg-info keeps no hashes: said, rather than passed off as intact."""
    egg = site.path / "old-2.0.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Name: old\nVersion: 2.0\n")
    (egg / "requires.txt").write_text("nowhere>=1\n")
    report = site.inspect()
    assert findings(report) == [
        ("old", "unmet", "nowhere>=1"),
        ("old", "unchecked", "RECORD"),
    ]
    assert report["distributions"][0]["version"] == "2.0"


def test_unreadable_metadata_leaves_the_name_of_the_directory(site: Site) -> None:
    """Empty, undecodable or gone: each is a finding, and the others are inspected all the same."""
    for name in ("undecodable", "gone", "well"):
        site.install(name)
    (site.path / "undecodable-1.0.dist-info/METADATA").write_bytes(b"Name: \xff\xfe\n")
    (site.path / "gone-1.0.dist-info/METADATA").unlink()
    (site.path / "empty-3.dist-info").mkdir()
    (site.path / "loop-1.0.dist-info").symlink_to("loop-1.0.dist-info")
    report = site.inspect()
    assert [(one["name"], one["version"]) for one in report["distributions"]] == [
        ("empty", "3"),
        ("gone", "1.0"),
        ("loop", "1.0"),
        ("undecodable", "1.0"),
        ("well", "1.0"),
    ]
    broken = ("empty", "gone", "loop", "undecodable")
    assert [f for f in findings(report) if f[2] == "METADATA"] == [
        (name, "unchecked", "METADATA") for name in broken
    ]
    assert "well" not in {name for name, _, _ in findings(report)}


@pytest.mark.parametrize("record", [b"", b"\xff,,\n", b'"' + b"x" * 200_000, b"a,b,c,d,e\xff\n"])
def test_a_record_that_cannot_be_read_is_said(site: Site, record: bytes) -> None:
    """Neither the files nor the run suffer from it."""
    (site.install("a") / "RECORD").write_bytes(record)
    assert site.findings() == [("a", "unchecked", "RECORD")]


def test_an_editable_install_says_that_its_sources_are_not_listed(site: Site) -> None:
    """Its RECORD lists a pointer to the sources, and nothing of them."""
    info = "a-1.0.dist-info"
    direct_url = json.dumps({"url": "file:///src/a", "dir_info": {"editable": True}})
    site.install("a", contents={"a.pth": "/src/a", f"{info}/direct_url.json": direct_url})
    report = site.inspect()
    assert findings(report) == [("a", "unchecked", "RECORD")]
    assert reasons(report) == ["an editable install: RECORD does not list its sources"]


def test_a_distribution_in_a_zip_is_unchecked_rather_than_missing(tmp_path: Path) -> None:
    """Its files exist, only not on the disk."""
    site = Site(tmp_path)
    site.install("a")
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for file in site.path.rglob("*"):
            target.write(file, file.relative_to(site.path))
    report = inspect([str(archive)], None, lambda progress, message: None)
    assert findings(report) == [("a", "unchecked", "RECORD")]
    assert reasons(report) == ["not installed in a directory: its files were not checked"]


def test_a_second_copy_is_a_duplicate_and_the_same_one_by_a_link_is_not(tmp_path: Path) -> None:
    """The first on the path is the one that Python uses, and the one inspected."""
    first, second = Site(tmp_path / "1"), Site(tmp_path / "2")
    first.install("Twice", "2.0")
    second.install("twice", "1.0")
    second.write("twice/unseen.py", "")
    (tmp_path / "lib64").symlink_to(first.path)
    searched = [str(first.path), str(tmp_path / "lib64"), str(second.path), str(tmp_path / "none")]
    report = inspect(searched, None, lambda progress, message: None)
    assert findings(report) == [("twice", "duplicate", "twice 1.0")]
    assert reasons(report) == ["installed as well, hidden by 2.0"]


@pytest.mark.parametrize("searched", ["", "."])
def test_what_a_build_left_in_the_working_directory_is_no_installation(
    site: Site, monkeypatch: pytest.MonkeyPatch, searched: str
) -> None:
    """As `pip install .` does in a checkout, from where it would hide what is installed."""
    site.install("mine")
    checkout = site.path.parent / "checkout"
    egg = checkout / "mine.egg-info"
    egg.mkdir(parents=True)
    (egg / "PKG-INFO").write_text("Name: mine\nVersion: 1.0\n")
    monkeypatch.chdir(checkout)
    first = searched and str(checkout)
    report = inspect([first, str(site.path)], None, lambda progress, message: None)
    assert (findings(report), len(report["distributions"])) == ([], 1)


def requiring(site: Site, *requirements: str) -> list[Triple]:
    site.install("a", metadata="".join(f"Requires-Dist: {r}\n" for r in requirements))
    return site.findings()


def test_absent_and_outdated_requirements_are_unmet(site: Site) -> None:
    """Names compare as PEP 503 says, versions as PEP 440."""
    site.install("My_Lib", "1.10", contents={})
    found = requiring(site, "my.lib>=1.9", "my-lib>=2", "absent", "absent2 @ https://example.org/x")
    assert found == [
        ("a", "unmet", "absent"),
        ("a", "unmet", "absent2"),
        ("a", "unmet", "my-lib>=2"),
    ]
    assert reasons(site.inspect())[2] == "1.10 is installed"


def test_an_installed_pre_release_counts(site: Site) -> None:
    """Somebody asked for it, or it would not be here."""
    site.install("lib", "2.0b1", contents={})
    assert requiring(site, "lib>=1") == []


def test_requirements_that_do_not_apply_here_are_not_unmet(site: Site) -> None:
    """Markers for other systems, and extras nobody asked for."""
    markers = ("python_version < '3'", "extra == 'dev'", "sys_platform == 'none'")
    assert requiring(site, *(f"absent; {marker}" for marker in markers)) == []
    assert requiring(site, "absent; python_version >= '3'") == [("a", "unmet", "absent")]


def test_an_extra_asked_for_brings_its_requirements_however_deep(site: Site) -> None:
    """a needs lib[all], whose all is lib[fast], whose fast needs what is absent, and all again."""
    extras = (
        "lib[Fast.er]; extra == 'all'",
        "absent>1; extra == 'fast-er'",
        "lib[all]; extra == 'fast-er'",
        "x; extra == 'no'",
        "y; python_version >= '3'",
    )
    lines = "".join(f"Requires-Dist: {extra}\n" for extra in extras)
    site.install("lib", contents={}, metadata=lines)
    assert requiring(site, "lib[all]") == [
        ("a", "unmet", "absent>1 (through lib[Fast.er])"),
        ("lib", "unmet", "y"),
    ]


def test_malformed_requirements_and_versions_are_told_apart_from_unmet(site: Site) -> None:
    """Neither can be judged, and neither stops the run."""
    site.install("lib", "not-a-version", contents={})
    assert requiring(site, "!!", "lib>=1") == [
        ("a", "invalid", "!!"),
        ("a", "unchecked", "lib>=1"),
    ]


CLASSIFIER = "Classifier: License :: OSI Approved :: "


@pytest.mark.parametrize(
    ("metadata", "identifier", "field"),
    [
        ("License-Expression: mit and (apache-2.0 or bsd-2-clause)", "MIT AND (Apache-2.0 OR BSD-2-Clause)", "License-Expression"),
        ("License: mit", "MIT", "License"),
        ("License: Apache License, Version 2.0", "Apache-2.0", "License"),
        ("License: The 3-Clause BSD License", "BSD-3-Clause", "License"),
        ("License: BSD 2-Clause License", "BSD-2-Clause", "License"),
        (CLASSIFIER + "Mozilla Public License 2.0 (MPL 2.0)", "MPL-2.0", "Classifier"),
        (CLASSIFIER + "GNU General Public License v3 or later (GPLv3+)", "GPL-3.0-or-later", "Classifier"),
        (CLASSIFIER + "BSD License", "LicenseRef-BSD", "Classifier"),
        ("License: BSD\n" + CLASSIFIER + "MIT License", "MIT", "Classifier"),
        ("License: BSD\n" + CLASSIFIER + "BSD License", "LicenseRef-BSD", "License"),
        ("License: see file\n" + CLASSIFIER + "ISC License (ISCL)", "ISC", "Classifier"),
        (CLASSIFIER + "MIT License\n" + CLASSIFIER + "Apache Software License", None, "Classifier"),
        ("License: ask my lawyer", None, "License"),
        ("License: MIT" + " and many more words" * 9, None, "License"),
        ("", None, None),
    ],
)  # fmt: skip
def test_licences_become_one_spdx_identifier_or_none(
    site: Site, metadata: str, identifier: str | None, field: str | None
) -> None:
    """An exact licence from any field beats a family; what is ambiguous gets no identifier."""
    site.install("a", metadata=f"{metadata}\n" if metadata else "")
    report = site.inspect()
    (one,) = report["distributions"]
    assert (one["licence"], one["licence_field"]) == (identifier, field)
    assert report["summary"]["licences"] == {identifier or "unknown": 1}
    assert findings(report) == []


def test_an_invalid_licence_expression_is_found_and_the_next_field_counts(site: Site) -> None:
    """PEP 639 allows valid SPDX only."""
    site.install("a", metadata="License-Expression: MIT or so\nLicense: ISC\n")
    report = site.inspect()
    assert findings(report) == [("a", "invalid", "License-Expression")]
    assert report["distributions"][0]["licence"] == "ISC"

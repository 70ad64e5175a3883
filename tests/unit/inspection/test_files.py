"""Files against RECORD: each test plants one fact on a disk and sees exactly it found."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from asyncpoll.inspection import inspect
from tests.unit.inspection.made_up import Site, findings, reasons


def test_an_intact_distribution_is_without_findings(site: Site) -> None:
    """What agrees with its RECORD is counted and not blamed."""
    site.install("Some.Thing_x", contents={"thing/__init__.py": "", "thing/data/a,b.txt": "ä"})
    report = site.inspect()
    assert findings(report) == []
    assert report["distributions"][0]["name"] == "some-thing-x"
    assert report["summary"]["files_listed"] == 4
    assert report["summary"]["without_findings"] == 1
    assert report["truncated"] == []


def test_a_changed_length_is_found_and_both_lengths_are_named(site: Site) -> None:
    """The reason gives the sizes, so that a reader can judge without the disk."""
    site.install("a")
    site.write("a/__init__.py", "x = 1  # and more\n")
    report = site.inspect()
    assert findings(report) == [("a", "changed", "a/__init__.py")]
    assert reasons(report) == ["has 18 bytes, RECORD says 6"]


def test_deleted_files_and_dangling_links_are_missing(site: Site) -> None:
    """Whatever can't be opened because nothing is there is missing."""
    site.install("a", contents={"a/gone.py": "1", "a/dangling.py": "2", "b/c.py": "3"})
    (site.path / "a/gone.py").unlink()
    (site.path / "a/dangling.py").unlink()
    (site.path / "a/dangling.py").symlink_to(site.path / "nowhere")
    shutil.rmtree(site.path / "b")
    (site.path / "b").write_text("a file where a directory was")
    expected = [("a", "missing", path) for path in ("a/dangling.py", "a/gone.py", "b/c.py")]
    assert site.findings() == expected


def test_a_link_to_the_same_content_is_no_finding(site: Site) -> None:
    """Installers may link files from a cache; what counts is the content."""
    site.install("a")
    (site.path / "a/__init__.py").rename(site.path.parent / "cached.py")
    (site.path / "a/__init__.py").symlink_to(site.path.parent / "cached.py")
    assert site.findings() == []


def test_added_files_are_unlisted_and_bytecode_is_not(site: Site) -> None:
    """Files, links and whole directories count, in the package and in its dist-info."""
    info = site.install("a", extra_lines="a/__pycache__/old.pyc,,\n")
    site.write("a/evil.py", "")
    site.write("a/deep/er/evil.py", "")
    site.write("a/__pycache__/evil.cpython-311.pyc", "")
    site.write("a/legacy.pyc", "")
    site.write(f"{info.name}/entry_points.txt", "")
    site.write(f"{info.name}/RECORD.jws", "")
    site.write("stray.py", "beside every package, so nobody's")
    (site.path / "a/linked").symlink_to(site.path.parent)
    found = ["a-1.0.dist-info/entry_points.txt", "a/deep/er/evil.py", "a/evil.py", "a/linked"]
    assert site.findings() == [("a", "unlisted", path) for path in found]


def test_a_file_listed_by_another_distribution_is_not_unlisted(site: Site) -> None:
    """Plug-ins may add to a package; what nobody lists is the package's, and is told once."""
    site.install("host", contents={"host/__init__.py": "", "host/plugins/own.py": ""})
    site.install("plugin", contents={"host/plugins/added.py": "", "host/extra/a.py": ""})
    assert site.findings() == []
    site.write("host/plugins/evil.py", "")
    site.write("host/evil.py", "")
    site.write("host/extra/evil.py", "")
    assert site.findings() == [
        ("host", "unlisted", "host/evil.py"),
        ("host", "unlisted", "host/plugins/evil.py"),
        ("plugin", "unlisted", "host/extra/evil.py"),
    ]


@pytest.mark.parametrize("init", [{}, {"ns/__init__.py": "# pkgutil style"}])
def test_a_shared_namespace_is_not_falsely_unlisted(site: Site, init: dict[str, str]) -> None:
    """A third sharer may keep no RECORD; what is in a distribution's own part is still found."""
    site.install("ns-a", contents={"ns/a/__init__.py": "", **init})
    site.install("ns-b", contents={"ns/b/__init__.py": "", **init})
    site.write("ns/c/__init__.py", "of a distribution without RECORD")
    assert site.findings() == []
    site.write("ns/a/evil.py", "")
    assert site.findings() == [("ns-a", "unlisted", "ns/a/evil.py")]


def test_scripts_outside_site_packages_are_checked(site: Site) -> None:
    """RECORD names them by climbing to the prefix, as pip writes it."""
    scripts = {f"../../../bin/{name}": "#!python\n" for name in ("kept", "changed", "gone")}
    site.install("a", contents=scripts)
    site.write("../../../bin/changed", "#!pythoN\n")
    (site.path / "../../../bin/gone").unlink()
    assert site.findings() == [
        ("a", "changed", "../../../bin/changed"),
        ("a", "missing", "../../../bin/gone"),
    ]


@pytest.mark.parametrize("path", ["../../../../secret", "/etc/hostname"])
def test_what_lies_outside_the_installation_is_not_read(site: Site, path: str) -> None:
    """A RECORD can't make the task open arbitrary files: it says so instead of looking."""
    site.write("../../../../secret", "s")
    site.install("a", extra_lines=f"{path},sha256=AAAA,1\n")
    report = site.inspect()
    assert findings(report) == [("a", "unchecked", path)]
    assert reasons(report) == ["lies outside the installation"]


def test_entries_that_cannot_be_verified_are_said_to_be_unchecked(site: Site) -> None:
    """Without a hash only presence and size count; a hash nobody can compute proves nothing."""
    lines = "a/weak,md5=AAAA,1\na/bare,,\na/sized,,5\na/odd,,many\na/short\na/absent,,\na/nul\0,,\n"
    site.install("a", extra_lines=lines)
    for name in ("weak", "bare", "sized", "odd", "short"):
        site.write(f"a/{name}", "1")
    assert site.findings() == [
        ("a", "changed", "a/sized"),
        ("a", "missing", "a/absent"),
        ("a", "unchecked", "a/nul\\x00"),
        ("a", "unchecked", "a/weak"),
    ]


def test_what_is_not_a_regular_file_is_changed_and_never_opened(site: Site) -> None:
    """A pipe in a file's place would block whoever opens it."""
    site.install("a", contents={"a/pipe.py": "1", "a/folder.py": "2", "a/loop.py": "3"})
    for name in ("pipe", "folder", "loop"):
        (site.path / f"a/{name}.py").unlink()
    os.mkfifo(site.path / "a/pipe.py")
    (site.path / "a/folder.py").mkdir()
    (site.path / "a/loop.py").symlink_to("loop.py")
    assert site.findings() == [
        ("a", "changed", "a/folder.py"),
        ("a", "changed", "a/pipe.py"),
        ("a", "unchecked", "a/loop.py"),
    ]


def test_unreadable_files_and_directories_are_unchecked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is the system's own, without the absolute path (root may read anything: faked)."""
    site.install("a", contents={"a/secret.py": "1", "a/open.py": "2", "a/deep/x.py": "3"})
    opened, listed = Path.open, os.scandir

    def refuse(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path.name == "secret.py":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **kwargs)

    def refuse_listing(path: Any) -> Any:
        if str(path).endswith("a/deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(os, "scandir", refuse_listing)
    report = site.inspect()
    assert findings(report) == [("a", "unchecked", "a/deep"), ("a", "unchecked", "a/secret.py")]
    assert reasons(report) == ["Permission denied"] * 2


def test_a_distribution_removed_during_the_run_is_missing(site: Site) -> None:
    """The run ends with what it saw, whenever the files went."""
    site.install("a")
    site.install("b")

    def remove(progress: float, message: str) -> None:
        if message.startswith("checking 0 of"):
            shutil.rmtree(site.path / "b")
            shutil.rmtree(site.path / "b-1.0.dist-info")

    found = findings(inspect([str(site.path)], None, remove))
    assert {(name, kind) for name, kind, _ in found} == {("b", "missing")}
    assert len(found) == 3

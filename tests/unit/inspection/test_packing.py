"""What is kept of the first two stages: all that the others need, in bounded size."""

from __future__ import annotations

import json
import os
from pathlib import Path

from asyncpoll.inspection import inspect
from asyncpoll.inspection.findings import Finding
from asyncpoll.inspection.gather import Installed
from asyncpoll.inspection.licences import Licence
from asyncpoll.inspection.packing import Judged, pack, pack_judged, unpack, unpack_judged
from tests.unit.inspection.made_up import Site

INSTALLED = Installed(
    name="Name",
    version="1.0",
    location=Path("/site packages/ü"),
    info=Path("/site packages/ü/name-1.0.dist-info"),
    licence_expression="MIT",
    licence="see file",
    classifiers=("License :: OSI Approved :: MIT License",),
    requires=("other>=1; python_version > '3'",),
    findings=(Finding("unchecked", "METADATA", "why"),),
)


def through_json(value: object) -> object:
    text = json.dumps(value)
    text.encode()
    assert "\\u0000" not in text
    return json.loads(text)


def test_what_was_packed_is_the_same_again() -> None:
    """Paths are paths, tuples are tuples."""
    assert unpack(through_json(pack([INSTALLED]))) == [INSTALLED]  # type: ignore[arg-type]
    judged = {"name": Judged(Licence("MIT", "License", "mit"), INSTALLED.findings)}
    assert unpack_judged(through_json(pack_judged(judged))) == judged  # type: ignore[arg-type]


def test_what_is_not_text_can_be_kept_and_paths_lead_where_they_led() -> None:
    """Undecodable names of directories, and NUL."""
    info = Path(os.fsdecode(b"/site/\xff-1.0.dist-info"))
    odd = Installed(name=os.fsdecode(b"\xff"), version="1\x00", location=Path("/site"), info=info)
    (again,) = unpack(through_json(pack([odd])))  # type: ignore[arg-type]
    assert (again.name, again.version, again.info) == ("\\udcff", "1\\x00", info)


def test_any_number_of_requirements_and_the_longest_texts_find_room() -> None:
    """What is left out is said, and never a distribution."""
    huge = Installed(
        "x" * 5_000,
        "1.0",
        Path("/site"),
        Path("/site/x"),
        licence="y" * 100_000,
        requires=tuple(f"requirement-{number}" for number in range(2_000)),
    )
    packed = pack([huge] * 200)
    assert len(packed) == 200
    assert len(json.dumps(packed)) < 1_048_576
    kept = unpack(packed)
    assert len(kept[0].requires) == 2_000
    assert kept[-1].requires == ()
    reason = "2000 requirements were not checked: too many to keep"
    assert kept[-1].findings == (Finding("unchecked", "METADATA", reason),)


def test_later_stages_need_nothing_but_what_the_first_two_gave(site: Site) -> None:
    """An inspection that gets both as JSON from another one gives the same report."""
    site.install("b", contents={"shared/b.py": ""}, metadata="Requires-Dist: absent\n")
    site.install("a", contents={"shared/a.py": ""}, metadata="License: MIT\n")
    (site.path / "a-1.0.dist-info/RECORD").write_bytes(b"\xff")
    kept: dict[str, str] = {}

    def keep(name: str, stage):
        kept[name] = json.dumps(stage())
        return json.loads(kept[name])

    report = inspect([str(site.path)], None, lambda *_: None, take=keep)
    again = inspect([], None, lambda *_: None, take=lambda name, _: json.loads(kept[name]))
    assert again == report
    assert list(kept) == ["gather", "normalise"]

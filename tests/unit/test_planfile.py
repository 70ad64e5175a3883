"""The polling file: what is written is what is read, and nothing else is."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from asyncpoll.planfile import PlanFile, PlanFileError, TaskPlan, parse, read, render, write

REPORT = TaskPlan(
    task="demo.report",
    samples=480,
    p50_ms=2_000.0,
    p95_ms=18_000.5,
    p99_ms=24_000.0,
    timeout_seconds=40.0,
    first_interval_seconds=0.4,
    hold_seconds=25.0,
    ci_timeout_seconds=36.001,
)
RARE = TaskPlan(task="demo.rare", samples=4, notes=("4 durations; P50 needs 10.",))
FILE = PlanFile(datetime(2026, 1, 31, 9, 30, tzinfo=UTC), (REPORT, RARE))


def document(**changed: object) -> str:
    """The file above with some members of its first plan changed."""
    whole = json.loads(render(FILE))
    whole["plans"][0].update(changed)
    return json.dumps(whole)


def test_a_file_is_read_as_it_was_written(tmp_path: Path):
    """With what was too little measured as None, and the notes that say so."""
    write(tmp_path / "plan.json", FILE)
    assert read(str(tmp_path / "plan.json")) == FILE
    assert FILE.for_task("demo.rare") == RARE
    assert FILE.for_task("demo.other") is None


def test_five_polls_come_at_one_interval_and_later_ones_double_up_to_the_cap():
    """What the SDK waits between two polls of a server that does not hold."""
    waits = REPORT.intervals()
    assert waits is not None
    assert list(islice(waits, 10)) == [0.4, 0.4, 0.4, 0.4, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert RARE.intervals() is None


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path):
    """A client that reads meanwhile never sees half a file."""
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(PlanFileError, match=r"plan\.json can't be written .* name a file in a"):
        write(tmp_path / "plan.json", FILE)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    with pytest.raises(PlanFileError, match="can't be written"):
        write(tmp_path / "missing" / "plan.json", FILE)


def test_a_new_file_takes_the_place_of_an_old_one(tmp_path: Path):
    """And may be read by whoever may read what its writer makes."""
    write(tmp_path / "plan.json", FILE)
    write(tmp_path / "plan.json", replace(FILE, plans=(RARE,)))
    assert read(tmp_path / "plan.json").plans == (RARE,)
    (tmp_path / "other").touch()
    assert (tmp_path / "plan.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(tmp_path: Path):
    """A pipe is written to: nobody's /dev/stdout becomes a file."""
    (tmp_path / "link").symlink_to(tmp_path / "plan.json")
    write(tmp_path / "link", FILE)
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "plan.json") == FILE
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write(tmp_path / "pipe", FILE)
    assert parse(os.read(reader, 65_536).decode()) == FILE
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"p50_ms": "2000"}, "p50_ms is '2000'; it has to be a number of milliseconds"),
        ({"p50_ms": float("nan")}, "p50_ms is nan; it has to be"),
        ({"p99_ms": 10**400}, r"p99_ms is 1000.*\.\.\.; it has to be"),
        ({"p95_ms": True}, "p95_ms is True; it has to be"),
        ({"p50_ms": 19_000}, "p50_ms is 19000; it can't be above p95_ms, which is 18000.5"),
        ({"hold_seconds": 0}, "hold_seconds is 0; it has to be a number of seconds above 0"),
        ({"first_interval_seconds": 0}, "first_interval_seconds is 0; it has to be"),
        ({"growth": 0.5}, "growth is 0.5; it has to be 1 or more"),
        ({"max_interval_seconds": None}, "max_interval_seconds is None; it has to be"),
        ({"samples": -1}, "samples is -1; it has to be a whole number, 0 or more"),
        ({"first_polls": 2.5}, "first_polls is 2.5; it has to be a whole number"),
        ({"task": ""}, "task is ''; it has to be the name of a task type"),
        ({"task": "demo.rare"}, "plans is 'demo.rare'; it may name a task once"),
        ({"notes": "few"}, "notes is 'few'; it has to be a list of sentences"),
        ({"p75_ms": 3}, "a plan is 'p75_ms'; it has no such member"),
    ],
)
def test_a_value_that_can_not_be_is_refused_by_name(changed: dict[str, object], said: str):
    """With the rule it breaks and how to get a file that is right."""
    with pytest.raises(PlanFileError, match=said + ".*make the file again with"):
        parse(document(**changed))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "It is not JSON"),
        ("[" * 100_000, "It is not JSON"),
        ("[]", r"the file is \[\]; it has to be a JSON object"),
        ('{"format": 1, "plans": []}', "made_at is missing from the file"),
        ('{"format": 2, "made_at": "2026-01-31T09:30:00Z", "plans": []}', "format is 2; it has to"),
        ('{"format": 1, "made_at": "yesterday", "plans": []}', "made_at is 'yesterday'; it has to"),
        ('{"format": 1, "made_at": 7, "plans": []}', "made_at is 7; it has to be a time"),
        ('{"format": 1, "made_at": "2026-01-31T09:30:00", "plans": []}', "needs a time zone"),
        ('{"format": 1, "made_at": "2026-01-31T09:30:00Z", "plans": {}}', "has to be a list"),
        ('{"format": 1, "made_at": "2026-01-31T09:30:00Z", "plans": [3]}', "a plan is 3; it has"),
        (
            '{"format": 1, "made_at": "2026-01-31T09:30:00Z", "plans": [{"task": "a"}]}',
            "samples is missing from a plan",
        ),
    ],
)
def test_what_is_no_polling_file_is_refused(text: str, said: str):
    """Before any part of it is used."""
    with pytest.raises(PlanFileError, match=said):
        parse(text)


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path):
    """So that whoever set its name can find it."""
    with pytest.raises(
        PlanFileError, match=r"plan\.json can't be read \(No such.*y\); make the file"
    ):
        read(tmp_path / "plan.json")
    (tmp_path / "plan.json").write_bytes(b"\xff\xfe")
    with pytest.raises(PlanFileError, match=r"plan\.json can't be read"):
        read(tmp_path / "plan.json")
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(PlanFileError, match=r"plan\.json: format is missing from the file"):
        read(tmp_path / "plan.json")

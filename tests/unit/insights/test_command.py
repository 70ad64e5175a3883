"""`asyncpoll plan`, from its arguments to what it prints."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from uuid import UUID

import pytest

from asyncpoll import planfile
from asyncpoll.cli import plan
from tasks_app.insights.done import Done


def run(*arguments: str) -> int:
    """The exit code of a command line."""
    parser = ArgumentParser()
    plan.register(parser.add_subparsers())
    asked = parser.parse_args(["plan", *arguments])
    return asked.run(asked)


def log(task: str = "demo.report", count: int = 100) -> str:
    """A worker's log in which tasks took 100 ms, 200 ms…"""
    lines = (
        Done(task, UUID(int=number), "default", 1, "SUCCESS", 100.0 * number, 0.0).line("now")
        for number in range(1, count + 1)
    )
    return "\n".join(lines) + "\n"


def piped(content: bytes) -> io.TextIOWrapper:
    """As stdin is."""
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A log of two task types, of which one is rare, with a bad line."""
    path = tmp_path / "worker.log"
    path.write_text(log() + log("demo.rare", 12) + "ASYNC_TASK_DONE {\n")
    return str(path)


def test_a_log_becomes_a_table(file: str, capsys: pytest.CaptureFixture[str]):
    """With what is not known, and what could not be used."""
    assert run(file, "--async-share", "12") == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()[:3]]
    assert rows[2] == [
        "demo.report",
        "100",
        "5",
        "s",
        "9.5",
        "s",
        "9.9",
        "s",
        "20",
        "s",
        "every",
        "1",
        "s",
        "11",
        "s",
        "30",
        "s",
    ]
    assert rows[1][:4] == ["demo.rare", "12", "600", "ms"]
    assert "demo.rare: P95 needs 20 samples, P99 100 and there are 12" in out
    assert "demo.rare: not decided: P95 needs 20 samples" in out
    assert "demo.report: polling is enough (12 % asynchronous, P95 9.5 s; nearest rule" in out
    assert "worker.log line 113: ASYNC_TASK_DONE is in no JSON object" in out


def test_a_type_that_was_not_measured_is_told_from_those_that_were(
    file: str, capsys: pytest.CaptureFixture[str]
):
    """As after a typo."""
    assert run(file, "--task", "demo.reprot") == 0
    assert "Not measured: demo.reprot. There are: demo.rare, demo.report" in capsys.readouterr().out


def test_a_log_becomes_json(file: str, capsys: pytest.CaptureFixture[str]):
    """With the same facts."""
    assert run(file, "--format", "json", "--task", "demo.report", "--async-share", "40%") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["task"], each["p95_ms"]) for each in found["plans"]] == [("demo.report", 9500)]
    assert found["decisions"] == [
        {
            "for": "demo.report",
            "answer": "event-driven",
            "share_percent": 40.0,
            "p95_seconds": 9.5,
            "rule": "share over 30 % or P95 over 60 s",
            "nearest": False,
        }
    ]


def test_a_log_becomes_a_polling_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Also when it comes from a pipe; what the file has no place for is said beside it."""
    other = Done("demo.report", UUID(int=7), "default", 1, "FAILED", 1.0, 0.0).line("now")
    monkeypatch.setattr(sys, "stdin", piped((log() + other).encode()))
    assert run("-", "--format", "polling-file", "--output", str(tmp_path / "plan.json")) == 0
    assert tuple(capsys.readouterr()) == ("", "Not used, 1 of another outcome.\n")
    found = planfile.read(tmp_path / "plan.json").for_task("demo.report")
    assert found is not None
    assert (found.timeout_seconds, found.hold_seconds) == (20.0, 11.0)


@pytest.mark.parametrize("shape", ["table", "json"])
def test_a_share_that_decides_alone_is_told_of_types_whose_p95_is_not_known(
    file: str, capsys: pytest.CaptureFixture[str], shape: str
):
    """As of one that was measured twelve times."""
    assert run(file, "--async-share", "40", "--task", "demo.rare", "--format", shape) == 0
    out = capsys.readouterr().out
    if shape == "table":
        said = "demo.rare: event-driven (40 % asynchronous, P95 not known; rule: share over 30 %"
        assert said in out
    else:
        assert json.loads(out)["decisions"][0]["p95_seconds"] is None


CSV = "task,duration_ms\n" + "a,5\n" * 10


@pytest.mark.parametrize(
    "content",
    [
        CSV.encode("utf-8-sig"),
        CSV.replace("\n", "\r\n").encode(),
        CSV.encode("utf-16"),
        gzip.compress(CSV.encode()),
        CSV.encode() + b"\xff\xfe\x00\n",
    ],
    ids=["byte order mark", "CRLF", "UTF-16", "gzip", "bytes that are no text"],
)
def test_a_file_is_read_however_its_text_was_written(
    content: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """From a disk as from a pipe, which may be named twice."""
    (tmp_path / "a.csv").write_bytes(content)
    monkeypatch.setattr(sys, "stdin", piped(content))
    assert run(str(tmp_path / "a.csv"), "-", "-") == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["a", "20"]


def test_a_packed_file_that_was_cut_off_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """A part of the measurements is not all of them."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(CSV.encode())[:-9])
    assert run(str(tmp_path / "a.gz")) == 3
    assert "a.gz can't be unpacked (" in capsys.readouterr().err


def test_who_reads_the_output_may_leave(file: str, monkeypatch: pytest.MonkeyPatch):
    """That is no wrong usage; whoever runs the command knows what it is."""

    def gone(text: str) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stdout, "write", gone)
    with pytest.raises(BrokenPipeError):
        run(file)


def test_stdin_may_be_closed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """By whoever started the command."""
    monkeypatch.setattr(sys, "stdin", None)
    assert run("-") == 3
    assert "stdin is closed; name a FILE." in capsys.readouterr().err


def test_a_decision_and_its_cost_need_no_measurements(capsys: pytest.CaptureFixture[str]):
    """The inputs are options."""
    numbers = {
        "saved-minutes": 8,
        "runs-per-day": 6,
        "people": 2,
        "working-days": 22,
        "cost-days": 2,
        "p95": 18,
        "async-share": 5,
    }
    assert run(*(f"--{name}={value}" for name, value in numbers.items())) == 0
    out = capsys.readouterr().out
    assert "decision: polling is enough (5 % asynchronous, P95 18 s; nearest rule" in out
    assert "verdict: not worth it: 35.2 h ≤ 48 h" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            [],
            "Name a FILE with measurements, or - for stdin; a decision needs none with --p95 SECONDS.",
        ),
        (
            ["nowhere.log"],
            "asyncpoll plan: nowhere.log can't be read (No such file or directory); name a file with measurements, or -",
        ),
        (["/"], "/ can't be read (Is a directory); name a file with measurements"),
        (["--p95=3", "--async-share=9", "--output=/none/x"], "/none/x can't be written (No such"),
        (["--people", "3"], "without --saved-minutes, --runs-per-day, --working-days, --cost-days"),
        (["--p95", "3"], "--p95 is for a decision, which needs --async-share"),
        ([__file__, "--from", "jsonl"], "There are no measurements in "),
        (
            [planfile.__file__],
            "For other files give --from jsonl, a JSON object a line, or --from csv",
        ),
        ([__file__, "--from", "csv"], "name those that hold the task type"),
    ],
)
def test_what_can_not_be_done_is_one_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    """On stderr, with the exit code for wrong usage."""
    assert run(*arguments) == 3
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["--async-share", "101"],
        ["--async-share=-1"],
        ["--p95", "1e308"],
        ["--people", "nan"],
        ["--people", "0.1234567890123"],
        ["--hours-per-day", "0"],
        ["--max-hold", "1e-99"],
    ],
)
def test_a_number_that_can_not_be_is_refused(wrong: list[str]):
    """By the parser."""
    with pytest.raises(SystemExit):
        run(*wrong)


def test_the_command_needs_no_django():
    """Whoever waits for somebody else's tasks has none."""
    code = (
        "import sys, asyncpoll.cli.plan; print([name for name in sys.modules if 'django' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Measurements from logs, JSON lines and CSV; what is none is counted and named."""

from __future__ import annotations

import io
import json
import re
from uuid import UUID

import pytest

from tasks_app.insights.columns import Columns
from tasks_app.insights.done import Done
from tasks_app.insights.measured import MOST_NAMED, MOST_TYPES, Measured
from tasks_app.insights.reading import LONGEST_LINE, Refused, read_into


def read(text: str, columns: Columns | None = None, kind: str | None = None) -> Measured:
    """What was found in a file of that text."""
    found = Measured()
    read_into(found, "file", io.StringIO(text), columns or Columns(), kind)
    return found


def exact(found: Measured) -> dict[str, list[float]]:
    """The durations of each type."""
    return {task: list(durations._exact) for task, durations in found.by_task.items()}


def line(task: str = "demo.a", outcome: str = "SUCCESS", duration_ms: float = 12.5) -> str:
    """As a worker writes it."""
    return Done(task, UUID(int=1), "default", 1, outcome, duration_ms, 3.0).line("2026-01-01")


def test_a_log_gives_what_its_lines_of_finished_tasks_say():
    """Whatever stands in front of them, between them, and after them."""
    wrapped = json.dumps({"message": line(), "event": "ASYNC_TASK_DONE", **json.loads(line())})
    log = [
        "INFO Worker {1} started",
        f"2026-01-01 INFO {{tasks_app}} 17: {line(duration_ms=1)} [main]",
        line('demo."b"', duration_ms=2),
        wrapped,
        line(outcome="FAILED"),
        json.dumps({"event": "something else"}),
        "",
    ]
    found = read("\n".join(log))
    assert exact(found) == {"demo.a": [1.0, 12.5], 'demo."b"': [2.0]}
    assert (found.others, found.of_other_outcome, found.bad) == (2, 1, 0)


def test_a_line_of_a_log_that_was_cut_off_is_named():
    """A disk that was full, for example."""
    found = read(f"{line()}\n{line()[:60]}\n{line().replace('12.500', 'null')}\n")
    assert exact(found) == {"demo.a": [12.5]}
    assert found.named == [
        "file line 2: ASYNC_TASK_DONE is in no JSON object",
        "file line 3: duration_ms is missing",
    ]


def test_json_lines_are_read_by_the_names_of_their_columns():
    """In the unit that the name ends in."""
    text = '{"job": "a", "took_seconds": 1.5}\n\n{"job": "a", "took_seconds": "2"}\n'
    found = read(text, Columns(task="job", duration="took_seconds"))
    assert exact(found) == {"a": [1500.0, 2000.0]}
    assert exact(read(text, Columns(task="job", duration="took_seconds", unit="min"))) == {
        "a": [90_000.0, 120_000.0]
    }


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_is_read_by_the_names_of_its_columns(delimiter: str):
    """Whatever is between them; with an outcome, only what succeeded."""
    rows = [["state", "kind", "ms"], ["ok", '"a b"', "5"], ["broken", "c", "6"], ["ok", "c", "7"]]
    text = "\n".join(delimiter.join(row) for row in rows)
    columns = Columns("kind", "ms", outcome="state", outcomes=("ok",))
    found = read(text, columns)
    assert exact(found) == {"a b": [5.0], "c": [7.0]}
    assert found.of_other_outcome == 1


def test_rows_without_a_type_are_of_the_one_that_is_named():
    """A file of one job's durations has no column for it."""
    assert exact(read("secs\n1\n2\n", Columns(duration="secs", unit="s", only_task="job"))) == {
        "job": [1000.0, 2000.0]
    }


def test_csv_without_the_columns_is_refused():
    """With those that it has."""
    with pytest.raises(Refused, match=r"columns a, b; name those .* with --task-column"):
        read("a,b\n1,2\n", kind="csv")
    with pytest.raises(Refused, match=r"columns '.x1b.2J, b'; name those"):
        read("\x1b[2J,b\n1,2\n", kind="csv")


def test_a_quoted_cell_goes_on_for_lines_and_one_that_is_never_closed_costs_its_own():
    """As messages in exports do."""
    rows = ['a,"two', 'lines, ""quoted"" ones",1', 'b,"never closed,2', *["c,fine,3"] * 3, ""]
    found = read("task,message,duration_ms\n" + "\n".join(rows))
    assert exact(found) == {"a": [1.0], "c": [3.0] * 3}
    assert found.named == ["file line 4: it is not a row of 3 cells"]
    long = read("task,message,duration_ms\n" + 'a,"\n' + "b,x,1\n" * 5_000)
    assert (long.bad, exact(long)["b"]) == (1, [1.0] * 5_000)


def test_csv_that_has_a_column_twice_is_refused():
    """Which of the two is meant is not guessed; one that nobody asked for may be there as often as it likes."""
    with pytest.raises(Refused, match="the column task twice"):
        read("task,duration_ms,task\na,1,b\n")
    assert exact(read("task,x,duration_ms,x\na,1,2,3\n")) == {"a": [2.0]}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ('{"task": "a", "duration_ms": "fast"}', "duration_ms is 'fast'; it has to be a number"),
        ('{"task": "a", "duration_ms": -1}', "duration_ms is -1; it has to be a number from 0"),
        ('{"task": "a", "duration_ms": NaN}', "duration_ms is nan; it has to be"),
        ('{"task": "a", "duration_ms": true}', "duration_ms is True; it has to be"),
        ('{"task": "a", "duration_ms": 1e300}', r"duration_ms is 1e\+300; it has to be"),
        ('{"task": 3, "duration_ms": 1}', "task is 3; it has to be a name"),
        (
            '{"task": "\\u001b[2J", "duration_ms": 1}',
            "task is '.x1b.2J'; it has to be a name .* printable",
        ),
        ('{"duration_ms": 1}', "task is missing"),
        ("[1]", "it is not a JSON object"),
        ("{" * 50_000, "it is not a JSON object"),
        ("x" * (LONGEST_LINE + 1), f"it has over {LONGEST_LINE} characters"),
    ],
)
def test_a_bad_line_is_named_and_the_next_is_read(row: str, why: str):
    """Its number and what is wrong with it."""
    found = read(f'{row}\n{{"task": "b", "duration_ms": 1}}\n', kind="jsonl")
    assert exact(found) == {"b": [1.0]}
    assert found.bad == 1
    assert found.named[0].startswith("file line 1: ")
    assert re.search(why, found.named[0])


def test_of_many_bad_lines_the_first_are_named_and_all_counted():
    """In bounded memory."""
    found = read("\n".join(["{}"] * 500), kind="jsonl")
    assert (found.bad, len(found.named)) == (500, MOST_NAMED)
    assert found.remarks()[0].endswith("and 490 more")


def test_a_column_that_is_no_type_does_not_fill_the_memory():
    """An id, for example, of which each row has another."""
    rows = "\n".join(f'{{"task": "{n}", "duration_ms": 1}}' for n in range(MOST_TYPES + 5))
    found = read(rows)
    assert (len(found.by_task), found.bad) == (MOST_TYPES, 5)
    assert "yet another task type than the first 1,000" in found.named[0]


def test_a_line_without_an_end_is_never_held_whole():
    """Nor is what follows it lost."""

    class Counting(io.StringIO):
        largest = 0

        def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
            text = super().readline(size)
            self.largest = max(self.largest, len(text))
            return text

    stream = Counting("x" * 1_000_000 + "\n" + '{"task": "a", "duration_ms": 1}')
    found = Measured()
    read_into(found, "file", stream, Columns(), "jsonl")
    assert stream.largest <= LONGEST_LINE + 1
    assert exact(found) == {"a": [1.0]}

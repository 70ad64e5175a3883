"""The arithmetic of the measurements: which figure is compared with which, and what counts as met."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from bench.figures import percentile
from bench.holds import aims as holds_aims
from bench.holds.figures import Figures as HoldFigures
from bench.holds.figures import median_of as hold_medians
from bench.options import names, numbers, or_none
from bench.prune.figures import Figures as PruneFigures
from bench.prune.figures import Spread, markdown, spread
from bench.prune.figures import judge as prune_judge
from bench.prune.turns import Turns
from bench.tally import FOLDER_VARIABLE, Total, total
from bench.verdicts import Verdict, table
from bench.worker.aims import ASYNCPOLL, judge, ratio
from bench.worker.figures import Cancels, Cost, Figures, median_of
from bench.worker.report import Report
from bench.worker.subjects import subjects


def figures(subject, batch, ran, completed=None):
    return Figures(subject, batch, 1000, 500.0, ran, completed or ran, 10.0, 1.0, 2.0)


def test_what_asyncpoll_completed_is_compared_with_what_the_other_ran():
    """The comparison that is hardest on asyncpoll: the others' last ends may still be unwritten."""
    ours = figures(ASYNCPOLL, 10, ran=900.0, completed=800.0)
    theirs = figures("pgqueuer", 10, ran=400.0, completed=200.0)
    assert ratio(theirs, [ours, theirs]) == 2.0


def test_batches_of_different_sizes_are_not_compared():
    """A queue is compared with asyncpoll at its own size of batch, and with nothing where that is missing."""
    ours = [figures(ASYNCPOLL, 1, ran=100.0), figures(ASYNCPOLL, 10, ran=600.0)]
    theirs = figures("pgqueuer", 10, ran=300.0)
    assert ratio(theirs, [*ours, theirs]) == 2.0
    assert ratio(replace(theirs, batch=200), [*ours, theirs]) is None
    assert ratio(ours[0], ours) is None


def test_aims_are_judged_at_each_batch():
    """At least pgqueuer's rate, and twenty times procrastinate's."""
    found = judge(
        [
            figures(ASYNCPOLL, 1, ran=100.0),
            figures(ASYNCPOLL, 10, ran=2000.0),
            figures("pgqueuer", 1, ran=101.0),
            figures("pgqueuer", 10, ran=2000.0),
            figures("procrastinate", 10, ran=100.0),
            figures("celery", 10, ran=5000.0),
        ],
        [],
    )
    assert [(v.title, v.where, v.is_met) for v in found] == [
        ("pgqueuer's rate", "batch 1", False),
        ("pgqueuer's rate", "batch 10", True),
        ("procrastinate's rate", "batch 10", True),
    ]


def test_growth_is_judged_against_the_smallest_table():
    """Within 1.2 times, for claim and commit apart."""
    costs = [Cost(1000, 10.0, 9.0, 20.0, 9.0), Cost(3_000_000, 12.0, 9.0, 25.0, 9.0)]
    found = judge([], costs)
    assert [(v.where, round(v.value, 3), v.is_met) for v in found] == [
        ("3,000,000 finished", 1.2, True),
        ("3,000,000 finished", 1.25, False),
    ]


def test_a_verdict_may_be_an_upper_or_a_lower_bound():
    """And both show in the same table."""
    slow = Verdict("rate", "≥", 1.0, "batch 1", 0.5)
    many = Verdict("threads", "≤", 39, "8,000 held", 12, is_ratio=False)
    assert (slow.is_met, many.is_met) == (False, True)
    assert table([slow, many])[2:] == [
        "| rate ≥ 1× | batch 1 | 0.50× | missed |",
        "| threads ≤ 39 | 8,000 held | 12 | met |",
    ]
    assert table([]) == []


def test_the_median_is_taken_of_each_figure_by_itself():
    """Of several rounds of one queue."""
    runs = [replace(figures("celery", 10, ran), cpu_us=1000 - ran) for ran in (10.0, 30.0, 20.0)]
    assert median_of(runs) == replace(figures("celery", 10, 20.0), cpu_us=980.0)


def hold_figures(subject, cpu_us, failed=0):
    rest = dict.fromkeys(HoldFigures.__dataclass_fields__, 1.0)
    return HoldFigures(
        **{
            **rest,
            "subject": subject,
            "held": 8000,
            "cpu_us": cpu_us,
            "threads": 5,
            "failed": failed,
        }
    )


def test_failures_of_all_rounds_are_summed_up():
    """A median would hide them; and a number of threads stays whole."""
    middle = hold_medians(
        [hold_figures("a", 3.0, 2), hold_figures("a", 5.0), hold_figures("a", 4.0, 1)]
    )
    assert (middle.cpu_us, middle.failed, middle.threads) == (4.0, 3, 5)


def test_a_hold_is_judged_by_the_reference_with_as_many_held():
    """Its cost is a multiple, its threads are a number."""
    found = holds_aims.judge(
        [hold_figures("base", 100.0), hold_figures("asyncpoll (uvicorn)", 90.0)], "base"
    )
    shown = {verdict.title: (verdict.where, verdict.value, verdict.is_met) for verdict in found}
    assert shown["CPU per hold, uvicorn"] == ("8,000 held", 0.9, True)
    assert shown["threads, asyncpoll (uvicorn)"] == ("8,000 held", 5.0, True)
    assert shown["memory per hold, uvicorn"][2] is False


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1.0), (50, 5.0), (51, 6.0), (99, 10.0), (100, 10.0)]
)
def test_a_percentile_is_a_value_that_occurred(percent, expected):
    """Nearest rank."""
    assert percentile([float(n) for n in range(10, 0, -1)], percent) == expected


def test_tasks_of_several_processes_are_counted_together(tmp_path):
    """Count, first and last, from files that other processes map."""
    code = "from bench.tally import count\nfor _ in range({}): count()"
    environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path)}
    assert total(tmp_path) == Total()
    for number in (2, 3):
        subprocess.run([sys.executable, "-c", code.format(number)], env=environment, check=True)
    found = total(tmp_path)
    assert found.count == 5
    assert 0 < found.first < found.last


def test_options_say_what_is_wrong_with_them():
    """Numbers within bounds, known names, or none."""
    parse = or_none(numbers(most=200))
    assert parse("1,10,200") == [1, 10, 200]
    assert parse("none") == []
    for wrong in ("0", "201", "1,,2", "x"):
        with pytest.raises(argparse.ArgumentTypeError, match="from 1 to 200, separated by commas"):
            parse(wrong)
    with pytest.raises(argparse.ArgumentTypeError, match="'c' is none of a, b"):
        names(["a", "b"])("a,c")


def test_a_queue_that_is_not_installed_is_known_to_be():
    """It is then named in the report and not measured."""
    subject = replace(subjects()[1], packages=("json", "no_such_package"))
    assert subject.missing == ["no_such_package"]


def test_a_cancel_is_judged_by_its_slowest_hundredth():
    """It reaches a running task within 100 ms, and the report says how fast it was."""
    found = judge([], [], Cancels(100, 2.0, 99.0)) + judge([], [], Cancels(100, 2.0, 101.0))
    assert [(v.where, v.is_met) for v in found] == [
        ("100 running tasks", True),
        ("100 running tasks", False),
    ]
    text = Report([], cancels=Cancels(100, 2.0, 101.0)).markdown()
    assert "| 100 | 2.0 / 101.0 ms |" in text
    assert "| cancel seen, p99 in ms ≤ 100 | 100 running tasks | 101 | missed |" in text


def test_the_report_shows_rates_growth_and_aims():
    """A line for each."""
    report = Report(
        ["a note"],
        medians=[figures(ASYNCPOLL, 10, ran=3000.0), figures("pgqueuer", 10, ran=2000.0)],
        costs=[Cost(1000, 10.0, 9.0, 20.0, 9.0), Cost(100_000, 11.0, 9.0, 20.0, 9.0)],
    )
    text = report.markdown()
    assert "| pgqueuer | 10 | 500/s | 2,000/s | 2,000/s | 1.50× | 10 µs | 1.0 / 2.0 ms |" in text
    assert "| 100,000 | 11.0 µs (1.10×) | 9.0 µs (1.00×) |" in text
    assert "| pgqueuer's rate ≥ 1× | batch 10 | 1.50× | met |" in text
    assert len(report.as_json()["aims"]) == 3


def test_what_pruning_costs_others_is_told_by_the_turns_beside_it(monkeypatch):
    """What began in a turn counts for it, except at its very beginning; then the aims are judged."""
    clock = iter([0.0, 1.0, 1.0, 2.0])
    monkeypatch.setattr("bench.prune.turns.time.monotonic", lambda: next(clock))
    turns = Turns()
    for pruned in (False, True):
        with turns.one(pruned):
            pass
    sides = turns.split(
        [(0.05, 99.0), (0.5, 2.0), (0.9, 4.0), (1.05, 99.0), (1.5, 5.0), (2.5, 99.0)]
    )
    assert (sides.alone, sides.beside) == (
        Spread(2, 2.0, 4.0, 4.0, 4.0),
        Spread(1, 5.0, 5.0, 5.0, 5.0),
    )
    found = PruneFigures(10, 30, 1.0, spread([20.0, 251.0]), 5.0, sides, sides)
    shown = {verdict.title: (verdict.value, verdict.is_met) for verdict in prune_judge(found)}
    assert shown == {
        "longest lock, ms": (251.0, False),
        "others' enqueue, median": (2.5, False),
        "others' done, median": (2.5, False),
    }
    assert "| done, beside the pruning | 1 | 5.0 (2.50×) |" in "\n".join(markdown(found))

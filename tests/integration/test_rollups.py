"""Durations by the hour: what is rolled up, when, and what is asked of it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tasks_app.insights.durations import Durations, rank
from tasks_app.insights.sketch import RELATIVE_ERROR, Sketch, bin_of
from tasks_app.models import RolledHour, Rollup, Task
from tasks_app.store import Rolled, dsn, fold_day, newest_durations, sum_rollups
from tasks_app.store.driver import run
from tasks_app.upkeep.rollups import FOLD_AFTER_DAYS, MOST_HOURS
from tests.integration.measured import NOW_HOUR, finished, hours_ago, roll

pytestmark = pytest.mark.django_db
DAY = 86_400


def durations(**asked: Any) -> dict[str, Durations]:
    """What the rollups say."""
    found = run(sum_rollups(asked.pop("within", 40 * DAY), ("SUCCESS",), **asked))
    return {
        task: Durations(sketch=Sketch(zip(each.bins, each.counts, strict=True)))
        for task, each in found.items()
    }


def test_percentiles_of_rollups_are_within_the_error_of_the_exact_ones() -> None:
    """Of durations in three hours, and of what they had waited."""
    drawn = random.Random(5)
    values = [drawn.lognormvariate(7, 1.2) for _ in range(3_000)]
    for hour in range(3):
        finished(hours_ago(hour + 2), values[hour::3])
    finished(hours_ago(2), [9e6] * 50, status="FAILED")
    assert roll() == [1_050, 1_000, 1_000]
    for waits, share in ((False, 1.0), (True, 0.1)):
        found = durations(task="sample.add", waits=waits)["sample.add"]
        assert len(found) == 3_000
        for percent in (50, 95, 99):
            exact = sorted(values)[rank(percent, 3_000)] * share
            # Postgres keeps times to the microsecond.
            assert found.percentile(percent) == pytest.approx(exact, rel=RELATIVE_ERROR + 1e-4)


def test_a_bin_is_the_librarys() -> None:
    """Postgres computes it as DDSketch does."""
    values = [0.0, 0.4, 1.0, 7.25, 999.9, 123_456.7]
    finished(hours_ago(2), values)
    roll()
    [rollup] = Rollup.objects.all()
    assert rollup.ran_bins == sorted({bin_of(value) for value in values})
    assert sum(rollup.ran_counts) == rollup.count == len(values)


def test_types_queues_and_outcomes_are_apart() -> None:
    """What is asked for is summed when it is asked for."""
    finished(hours_ago(2), [5.0, 6.0])
    finished(hours_ago(2), [7.0], queue="mail")
    finished(hours_ago(2), [8.0], name="sample.other")
    finished(hours_ago(2), [9.0], status="FAILED")
    roll()
    found = {(each.task, each.queue, each.outcome, each.count) for each in Rollup.objects.all()}
    assert found == {
        ("sample.add", "default", "SUCCESS", 2),
        ("sample.add", "mail", "SUCCESS", 1),
        ("sample.add", "default", "FAILED", 1),
        ("sample.other", "default", "SUCCESS", 1),
    }
    assert {task: len(each) for task, each in durations().items()} == {
        "sample.add": 3,
        "sample.other": 1,
    }
    assert list(durations(task="sample.other")) == ["sample.other"]
    assert {task: len(each) for task, each in durations(queue="mail").items()} == {"sample.add": 1}
    assert len(durations(within=3 * 3_600)["sample.add"]) == 3
    assert durations(within=3_600) == {}


def test_an_hour_is_rolled_up_once_and_again_the_same() -> None:
    """However often upkeep comes by; and the hour that goes on is left alone."""
    finished(hours_ago(3), [5.0] * 4)
    finished("now()", [5.0])
    assert roll() == [4]
    assert roll() == []
    before = list(Rollup.objects.values())
    RolledHour.objects.all().delete()
    assert roll() == [4]
    assert list(Rollup.objects.values()) == before


def test_who_finishes_late_is_counted_at_a_later_look() -> None:
    """Its transaction was committed after the hour was rolled up for the first time."""
    finished(hours_ago(4), [5.0] * 4)
    roll()
    finished(hours_ago(4), [6.0])
    assert roll() == []
    early = datetime.now(UTC) - timedelta(hours=4)
    RolledHour.objects.filter(started_at__lt=early).update(rolled_at=early)
    assert roll() == [5]
    assert len(durations()["sample.add"]) == 5


def test_tasks_that_were_deleted_are_measured_all_the_same() -> None:
    """A later look finds fewer than the first."""
    finished(hours_ago(2), [5.0] * 4)
    roll()
    Task.objects.all().delete()
    finished(hours_ago(2), [5.0])
    RolledHour.objects.all().delete()
    roll()
    assert len(durations()["sample.add"]) == 4


def test_a_first_round_goes_back_a_month_and_no_further() -> None:
    """However old the table is; the latest hours come first."""
    finished(hours_ago(50), [5.0])
    finished(hours_ago(47), [5.0] * 2)
    finished(hours_ago(2), [5.0] * 3)
    assert roll(most_hours=48) == [3, 2]


def test_hours_of_a_day_long_past_become_one_row_and_say_the_same() -> None:
    """Years cost a row a day; what was folded is never rolled up again."""
    fold = fold_day(FOLD_AFTER_DAYS, MOST_HOURS)
    finished(hours_ago(4), [5.0] * 4)
    finished(hours_ago(3), [50.0] * 4)
    finished(hours_ago(2), [500.0])
    roll()
    shift = timedelta(days=FOLD_AFTER_DAYS + 1)
    at = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - shift
    for number, hour in enumerate(Rollup.objects.order_by("started_at"), 1):
        moved = Rollup.objects.filter(task=hour.task, started_at=hour.started_at, span_seconds=3600)
        moved.update(started_at=at + timedelta(hours=number))
    assert run(fold) == Rolled(at, 3)
    assert run(fold) is None
    [day] = Rollup.objects.all()
    assert (day.span_seconds, day.count, day.started_at) == (DAY, 9, at)
    found = durations()["sample.add"]
    assert [found._sketch.ranked(n) for n in (0, 4, 8)] == pytest.approx(  # type: ignore[union-attr]
        [5, 50, 500], rel=RELATIVE_ERROR
    )


def test_a_day_of_which_a_part_was_folded_before_is_added_to() -> None:
    """While a month's history is rolled up, another process may have begun to fold."""
    old = FOLD_AFTER_DAYS * 24 + 48
    day = f"date_trunc('day', {NOW_HOUR} - {old} * interval '1 hour', 'UTC')"
    before = f"{day} - interval '3 hours'"
    finished(f"{day} + interval '13 hours'", [500.0])
    finished(before, [1.0], name="sample.before")
    roll(old + 30)
    fold = fold_day(FOLD_AFTER_DAYS, MOST_HOURS)
    assert run(fold) is not None
    folded = run(fold)
    assert folded is not None
    noon = folded.started_at + timedelta(hours=12)
    assert RolledHour.objects.filter(started_at=noon).delete()[0] == 1
    finished(before, [1.0], name="sample.before")
    finished(f"{day} + interval '12 hours'", [5.0] * 3)
    finished(f"{day} + interval '13 hours'", [5.0] * 3)
    assert roll(old + 30) == [3], "the other hours were rolled up and folded, and are left alone"
    assert run(fold) is not None
    [rollup] = Rollup.objects.filter(task="sample.add")
    assert (rollup.span_seconds, rollup.count) == (DAY, 4)
    found = durations()["sample.add"]
    assert [found._sketch.ranked(n) for n in (0, 2, 3)] == pytest.approx(  # type: ignore[union-attr]
        [5, 5, 500], rel=RELATIVE_ERROR
    )


def test_the_newest_are_given_as_they_are() -> None:
    """Up to a limit of rows looked at, whatever is asked for."""
    finished("now() - interval '2 hours'", [1.0] * 3)
    finished("now() - interval '1 hour'", [2.0] * 2)
    finished("now() - interval '1 minute'", [3.0], name="sample.other")
    found = run(newest_durations(DAY, ("SUCCESS",), 5))
    assert {task: sorted(each.ran) for task, each in found.items()} == {
        "sample.add": [1.0, 1.0, 2.0, 2.0],
        "sample.other": [3.0],
    }
    assert list(run(newest_durations(DAY, ("SUCCESS",), 5, "sample.other"))) == ["sample.other"]
    assert found["sample.add"].waited[0] == pytest.approx(0.1 * found["sample.add"].ran[0])
    assert run(newest_durations(DAY, ("FAILED",), 5)) == {}


@pytest.mark.django_db(transaction=True)
def test_rolling_up_is_left_to_the_process_that_has_its_lock() -> None:
    """Two at once would do the same work."""
    finished(hours_ago(2), [5.0])
    with psycopg.connect(**dsn.parameters("test")) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('asyncpoll'), hashtext('roll_up'))")
        assert roll() == []
    assert roll() == [1]

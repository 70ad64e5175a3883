"""Cron arithmetic, above all where clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.cron import next_tick
from tasks_app.errors import InvalidSchedule

BERLIN = "Europe/Berlin"


def ticks(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next ticks after a time in UTC, as times in UTC."""
    at = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = []
    for _ in range(count):
        at = next_tick(cron, zone, at)
        found.append(f"{at:%m-%d %H:%M}")
    return found


def test_an_expression_is_read_on_the_clocks_of_its_zone():
    """Half past seven in Berlin is half past six in UTC, in winter."""
    assert ticks("30 7 * * MON-FRI", BERLIN, "2026-01-09T06:30", 2) == [
        "01-12 06:30",
        "01-13 06:30",
    ]
    assert ticks("30 7 * * *", "Asia/Kathmandu", "2026-01-09T00:00", 1) == ["01-09 01:45"]
    assert next_tick("* * * * *", "UTC", datetime(2026, 1, 1, tzinfo=UTC)).tzinfo is UTC


def test_six_fields_begin_with_seconds():
    """For what happens more often than once a minute."""
    after = datetime(2026, 1, 1, 0, 0, 7, 500_000, tzinfo=UTC)
    assert next_tick("*/10 * * * * *", "UTC", after) == datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)


def test_a_time_of_day_that_is_skipped_ticks_at_the_end_of_the_gap():
    """On 29 March at 2:00 clocks in Berlin go to 3:00; the night's job is not left out."""
    assert ticks("30 2 * * *", BERLIN, "2026-03-28T00:00", 3) == [
        "03-28 01:30",
        "03-29 01:00",
        "03-30 00:30",
    ]


def test_a_time_of_day_that_comes_twice_ticks_once():
    """On 25 October at 3:00 clocks in Berlin go back to 2:00; the night's job does not run again."""
    assert ticks("30 2 * * *", BERLIN, "2026-10-24T00:00", 3) == [
        "10-24 00:30",
        "10-25 00:30",
        "10-26 01:30",
    ]


@pytest.mark.parametrize("after", ["2026-10-25T01:00", "2026-10-25T01:10", "2026-10-25T01:59"])
def test_nothing_ticks_again_for_a_process_that_starts_in_the_second_of_two_hours(after):
    """The next tick is never one that has passed, or it would tick for ever."""
    assert ticks("30 2 * * *", BERLIN, after, 1) == ["10-26 01:30"]


def test_what_runs_every_few_minutes_follows_the_time_that_passes():
    """An hour that comes twice has twice as many, one that is skipped has none."""
    assert ticks("*/30 * * * *", BERLIN, "2026-10-24T23:45", 5) == [
        "10-25 00:00",
        "10-25 00:30",
        "10-25 01:00",
        "10-25 01:30",
        "10-25 02:00",
    ]
    assert ticks("0 * * * *", BERLIN, "2026-03-29T00:30", 2) == ["03-29 01:00", "03-29 02:00"]


def test_midnight_may_be_what_is_skipped():
    """In Cairo clocks go forward at midnight."""
    assert ticks("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00", 2) == [
        "04-23 22:00",
        "04-24 21:00",
    ]


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("", "cron is '' (Wrong number of fields); write minute, hour, day of month"),
        ("* * * *", "Wrong number of fields"),
        ("61 * * * *", "Bad minute"),
        ("*/0 * * * *", "Bad minute"),
        ("@daily", "Wrong number of fields"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("0 0 LW * */7", "which never ticks; name a day that exists"),
    ],
)
def test_a_bad_expression_is_refused_with_the_rule_and_an_example(cron, words):
    """When it is declared, not at the tick that never comes."""
    with pytest.raises(InvalidSchedule) as refused:
        next_tick(cron, "UTC", datetime(2026, 1, 1, tzinfo=UTC))
    assert words in str(refused.value)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "Europe", "a\x00b"])
def test_an_unknown_zone_is_refused(zone):
    """With a name to use instead."""
    with pytest.raises(InvalidSchedule, match="use a name such as 'Europe/Berlin'"):
        next_tick("* * * * *", zone, datetime(2026, 1, 1, tzinfo=UTC))


@given(
    minutes=st.sampled_from(["*", "*/7", "0", "30", "0,59", "10-20"]),
    hours=st.sampled_from(["*", "*/2", "0", "2", "1-3", "23"]),
    zone=st.sampled_from([BERLIN, "America/New_York", "Africa/Cairo", "Australia/Lord_Howe"]),
    after=st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
)
def test_every_tick_is_later_than_the_one_before_and_comes_within_two_days(
    minutes, hours, zone, after
):
    """Whatever clocks do, and wherever one starts."""
    cron = f"{minutes} {hours} * * *"
    first = next_tick(cron, zone, after)
    second = next_tick(cron, zone, first)
    assert after < first < second
    assert second - after < timedelta(days=4)
    assert next_tick(cron, zone, first - timedelta(microseconds=1)) <= first

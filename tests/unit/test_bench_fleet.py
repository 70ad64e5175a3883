"""The arithmetic of `python -m bench fleet`: what is asked, what happens when, what is counted and what counts as met."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import orjson
import pytest

from bench.fleet.aims import judge
from bench.fleet.clients import rest_of_a_hold
from bench.fleet.figures import (
    Crowded,
    Healed,
    Size,
    Traffic,
    crowded_median,
    healed_median,
    traffic_median,
)
from bench.fleet.queries import Asked
from bench.fleet.report import Report
from bench.fleet.scenario import SHORTEST_SECONDS, ends_within, requests_per_task, scenario
from bench.fleet.traffic import Window
from bench.fleet.ways import WAYS, News

PLAIN, SHORT, EACH, HUNDRED = WAYS
SIZE = Size("redis", 3)
CROWDED = Crowded(SIZE, 1500, 1.0, 4.0, 8000, 0.9, 0.4, 2000, 0.5, 0, 0, 0)
TRAFFIC = Traffic(SIZE, "each", 1500, 72.0, 50.0, 3600.0, 3400.0, 2400.0, 1200.0, 90.0, 2.0, 9.0, 12, 0)  # fmt: skip
HEALED = Healed("a fault", 0.0, 1.5, 2.1, 3.0, 0.1)


def test_short_polls_are_never_held_and_long_polls_are():
    """Both say what they know of one task."""
    assert b"/tasks/a/long_poll?client_known_version=2&max_hold_seconds=0 " in SHORT.request(
        {"a": 2}, 25.0
    )
    assert b"client_known_version=2&max_hold_seconds=12.5 " in EACH.request({"a": 2}, 12.5)
    assert b"/tasks/a/plain_poll HTTP" in PLAIN.request({"a": 2}, 25.0)


def test_a_client_with_nothing_to_wait_for_submits_and_waits():
    """In one request, whose answer tells it what to wait for if that goes on."""
    assert EACH.request({}, 25.0).startswith(b"POST /api/v1/tasks HTTP")
    assert b"\r\nPrefer: wait=25\r\n" in EACH.request({}, 25.0)
    answer = orjson.dumps({"task_id": "a", "version": 2, "status": "RUNNING"})
    assert EACH.read(answer, {}) == ([News("a", 2, False)], 0.1)


@pytest.mark.parametrize(
    ("hold", "requests"), [(25, 3.5), (30, 3.0), (120, 1.0), (60, 1 + 2 / 3), (29, 3.1)]
)
def test_the_fewest_requests_are_what_the_arithmetic_says(hold, requests):
    """Also as the mean of ceil(d / hold)."""
    assert requests_per_task(hold) == pytest.approx(requests, abs=0.005)
    durations = [30 + 90 * (n + 0.5) / 9_000 for n in range(9_000)]
    counted = sum(math.ceil(duration / hold) for duration in durations) / 9_000
    assert requests_per_task(hold) == pytest.approx(counted, abs=0.005)


def test_holds_that_are_under_way_end_as_often_as_those_that_are_begun_anew():
    """Of 1,500, fifty a second run out: were the rest of each as likely as any other, it would be sixty."""
    rests = [rest_of_a_hold((n + 0.5) / 15_000) for n in range(15_000)]
    assert 0.1 <= min(rests) < max(rests) <= 25
    first_second = sum(rest < 1.1 for rest in rests) / 10 / 1.1
    assert first_second == pytest.approx(50, rel=0.05)


def test_a_bundle_asks_for_all_its_tasks_and_lingers():
    """Each with the version that is known."""
    asked = HUNDRED.request({"a": 2, "b": 1}, 25.0)
    assert b"/tasks/long_poll?task=a:2&task=b:1&max_hold_seconds=25.0&linger_ms=3500 " in asked


def told(task: str, version: int, goes_on: bool = True) -> dict[str, object]:
    return {"task_id": task, "version": version, "should_continue_polling": goes_on}


def test_only_a_newer_version_is_news():
    """Of one task and of several; the pause is the one that the server recommends."""
    one = orjson.dumps({**told("a", 2), "recommended_client_backoff_ms": 100})
    assert EACH.read(one, {"a": 2}) == ([], 0.1)
    several = [told("a", 3, goes_on=False), told("b", 1)]
    answer = {"tasks": several, "problems": [], "recommended_client_backoff_ms": 0}
    assert HUNDRED.read(orjson.dumps(answer), {"a": 2, "b": 1}) == ([News("a", 3, True)], 0.0)


def test_a_problem_with_one_task_is_an_error():
    """No news would hide it."""
    answer = {"tasks": [], "problems": [{"status": 404}], "recommended_client_backoff_ms": 0}
    with pytest.raises(ValueError, match="404"):
        HUNDRED.read(orjson.dumps(answer), {"a": 2})


def test_of_1500_tasks_twenty_end_each_second():
    """75 s is the mean."""
    assert ends_within(1500, 10) == 200
    assert ends_within(1500, SHORTEST_SECONDS) == 600


def test_each_task_that_ends_is_followed_by_one_of_its_own():
    """In order of time, the successors in the order in which they can be claimed."""
    running, waiting = [f"r{n}" for n in range(50)], [f"w{n}" for n in range(20)]
    plan = scenario(running, waiting, 10, random.Random(1))
    times = [deed.at for deed in plan.deeds]
    assert times == sorted(times)
    assert times[0] >= 0
    ended = [deed.task for deed in plan.deeds if deed.deed == "end"]
    assert [deed.task for deed in plan.deeds if deed.deed == "start"] == waiting
    assert [plan.successors[task] for task in ended] == waiting
    assert set(ended) < set(running)
    for deed in plan.deeds:
        if deed.deed == "end":
            (started,) = [d.at for d in plan.deeds if d.task == plan.successors[deed.task]]
            assert started > deed.at


def test_only_what_is_within_the_window_counts():
    """By the second and by the minute."""
    window = Window(10.0, 20.0, Asked(5, 2, 0), Asked(25, 12, 0), 1.0)
    assert window.per_second([9.9, 10.0, 19.9, 20.0]) == 0.2
    assert (window.per_minute("statements"), window.per_minute("reads")) == (120.0, 60.0)


def test_what_failed_in_any_round_is_summed_up():
    """A median would hide it."""
    rounds = [CROWDED, replace(CROWDED, resets=2, storm_s=0.8), replace(CROWDED, storm_s=1.2)]
    middle = crowded_median(rounds)
    assert (middle.resets, middle.storm_s, middle.size) == (2, 0.9, SIZE)
    assert traffic_median([TRAFFIC, replace(TRAFFIC, errors=3)]).errors == 3
    assert healed_median([HEALED, replace(HEALED, worst_wait_s=2.9)]).worst_wait_s == 2.9


def missed(*, crowded=(), traffic=(), healed=()) -> list[str]:
    return [v.title for v in judge(crowded, traffic, healed) if not v.is_met]


def test_a_fleet_loses_nothing():
    """Nor do its clients, when it drains."""
    assert missed(crowded=[CROWDED]) == []
    worse = replace(CROWDED, failed=1, resets=1, not_drained=1, drain_s=3.5)
    assert missed(crowded=[worse]) == [
        "wrong or missing answers",
        "resets",
        "answers other than 200",
        "s to drain",
    ]


def test_reads_are_bounded_by_changes_and_first_polls():
    """Requests by the way of waiting, errors by none."""
    assert missed(traffic=[TRAFFIC]) == []
    worse = replace(TRAFFIC, reads_per_minute=3700.0, requests_per_second=77.1, errors=1)
    assert missed(traffic=[worse]) == ["errors", "reads by changes and first polls", "requests/s"]
    assert missed(traffic=[replace(TRAFFIC, way="hundred")]) == ["requests/s"]
    assert missed(traffic=[replace(TRAFFIC, way="short", requests_per_second=1500.0)]) == []
    assert missed(traffic=[replace(worse, way="plain")]) == []


def test_a_wait_is_excused_by_what_the_machine_took():
    """And by nothing else."""
    assert missed(healed=[replace(HEALED, worst_wait_s=3.1)]) == []
    assert missed(healed=[replace(HEALED, worst_wait_s=3.2)]) == ["s waited"]
    assert missed(healed=[replace(HEALED, heal_limit_s=1.0)]) == ["s to heal"]


def test_the_report_shows_each_part_that_was_measured():
    """A table for each, and the aims."""
    report = Report(["a note"], [CROWDED], [TRAFFIC], [HEALED])
    text = report.markdown()
    assert "| 3 × redis | 1,500 | 1.00 / 4.00 ms | 8,000 in 0.90 s, commits 0.40 s |" in text
    assert "| 3 × redis | each | 1,500 | 72.0 (50.0 without news) | 3,600 (3,400 reads" in text
    assert "| a fault | 0.00 s | 1.50 s | 2.10 s | 0.10 s |" in text
    assert "- a note" in text
    assert "requests/s" not in Report(["a note"], [CROWDED]).markdown()
    assert {verdict["is_met"] for verdict in report.as_json()["aims"]} == {True}

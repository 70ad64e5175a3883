"""The pytest plugin, in suites of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

from asyncpoll.planfile import PlanFile, TaskPlan, read, write
from asyncpoll.pytest_plugin.turns import turn

pytest_plugins = ["pytester"]

Suite = Callable[..., pytest.RunResult]
PLAN = "asyncpoll-plan.json"
ENDPOINT = """
import httpx
import pytest

def answers(*statuses):
    left = list(statuses)
    def answer(request):
        return httpx.Response(200, json={"status": left.pop(0) if left[1:] else left[0]})
    return httpx.MockTransport(answer)

def endpoint(*statuses):
    return httpx.Client(transport=answers(*statuses), base_url="http://reports.test")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Runs a suite of one module with no plugins but ours and those named."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))

    def run(
        source: str,
        *options: str,
        plugins: tuple[str, ...] = ("rerunfailures",),
        ini: str = "",
        apart: bool = False,
    ) -> pytest.RunResult:
        pytester.makeini(f"[pytest]\nasyncpoll_rerun_delay = 0\n{ini}")
        pytester.makepyfile(test_it=source)
        start = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
        loaded = (f"-p{name}" for name in ("asyncpoll.pytest_plugin", *plugins))
        return start(*loaded, "--strict-markers", *options)

    return run


def written(pytester: pytest.Pytester) -> dict[str, TaskPlan]:
    """The plans in the artefact."""
    return {plan.task: plan for plan in read(pytester.path / PLAN).plans}


MARKED = """
import pytest

@pytest.mark.async_task
def test_waits(): pass

def test_does_not(): pass
"""


@pytest.mark.parametrize(
    ("expression", "ran"), [("async_task", "test_waits"), ("not async_task", "test_does_not")]
)
def test_marked_tests_can_have_a_window_of_their_own(suite, expression, ran):
    """Selected or left out by marker, which strict suites know."""
    result = suite(MARKED, "-v", "-m", expression)
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines([f"*::{ran} PASSED*"])


FLAKY = """
import pytest

tries = []

{marks}
def test_it():
    tries.append(1)
    assert len(tries) > {failures}
"""


@pytest.mark.parametrize(
    ("marks", "failures", "options", "outcomes"),
    [
        ("@pytest.mark.async_task", 1, (), {"passed": 1, "rerun": 1}),
        ("@pytest.mark.async_task", 2, (), {"failed": 1, "rerun": 1}),
        ("", 1, (), {"failed": 1}),
        (
            "@pytest.mark.async_task\n@pytest.mark.flaky(reruns=2)",
            2,
            (),
            {"passed": 1, "rerun": 2},
        ),
        ("@pytest.mark.async_task", 2, ("--reruns", "2"), {"passed": 1, "rerun": 2}),
        ("@pytest.mark.async_task", 1, ("--reruns", "0"), {"failed": 1}),
    ],
    ids=["once", "not twice", "unmarked", "own mark", "own option", "none wanted"],
)
def test_a_marked_test_that_fails_is_tried_once_more_unless_somebody_says_how_often(
    suite, marks, failures, options, outcomes
):
    """The project's own mark and options win."""
    result = suite(FLAKY.format(marks=marks, failures=failures), *options)
    found = result.parseoutcomes()
    found.pop("warnings", None)  # pytest's own, where other tests have imported the plugin before
    assert found == outcomes


@pytest.mark.parametrize(
    ("options", "marks"), [((), {"reruns": 1, "reruns_delay": 10}), (("--pdb",), None)]
)
def test_the_other_try_comes_after_ten_seconds(pytester, monkeypatch, options, marks):
    """But not for somebody who wants to look at the first failure."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(MARKED)
    loaded = ("-p", "asyncpoll.pytest_plugin", "-p", "rerunfailures")
    items, _ = pytester.inline_genitems(*loaded, *options)
    flaky = items[0].get_closest_marker("flaky")
    assert (flaky and flaky.kwargs) == marks


def test_a_run_that_names_another_delay_gets_it(pytester, monkeypatch):
    """The option of pytest-rerunfailures says what is wanted now."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(MARKED)
    loaded = ("-p", "asyncpoll.pytest_plugin", "-p", "rerunfailures")
    items, _ = pytester.inline_genitems(*loaded, "--reruns-delay", "3")
    assert items[0].get_closest_marker("flaky").kwargs["reruns_delay"] == 3


def test_a_delay_that_is_none_is_refused(suite):
    """In one line."""
    result = suite(MARKED, "-o", "asyncpoll_rerun_delay=soon")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: asyncpoll_rerun_delay is 'soon'; it must be a number of seconds from 0 to 3600."]
    )


WAITING = (
    ENDPOINT
    + """
import asyncio

@pytest.mark.parametrize("number", range(12))
@pytest.mark.async_task("reports.yearly")
def test_sync(wait_for_terminal, number):
    assert wait_for_terminal(endpoint("RUNNING", "COMPLETED"), "/1", interval=0.001) == {"status": "COMPLETED"}

@pytest.mark.parametrize("number", range(8))
def test_async(wait_for_terminal, number):
    client = httpx.AsyncClient(transport=answers("RUNNING", "SUCCESS"), base_url="http://reports.test")
    assert asyncio.run(wait_for_terminal(client, "/1", task="reports.yearly", interval=0.001)) == {"status": "SUCCESS"}

def test_other(wait_for_terminal):
    wait_for_terminal(endpoint("SUCCESS"), "/1")

@pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
def test_ended_badly(wait_for_terminal, status):
    assert wait_for_terminal(endpoint(status), "/1")["status"] == status
"""
)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_what_was_waited_for_is_the_next_runs_plan(suite, pytester, workers):
    """Measured in whichever process the test ran, by whichever client; what ended badly tells nothing."""
    plugins = ("xdist", "rerunfailures") if workers else ()
    result = suite(WAITING, *workers, plugins=plugins, apart=bool(workers))
    result.assert_outcomes(passed=23)
    plans = written(pytester)
    assert {name: plan.samples for name, plan in plans.items()} == {
        "reports.yearly": 20,
        "test_it.py::test_other": 1,
    }
    assert plans["reports.yearly"].p95_ms > 0
    assert plans["reports.yearly"].timeout_seconds == 30
    result.stdout.fnmatch_lines(
        [
            "*= asyncpoll =*",
            f"The next run's plan is in *{PLAN}:",
            "  reports.yearly: 20 measured, up to 30 s",
            "  test_it.py::test_other: 1 measured, up to 30 s (The slowest stands for the P95, which needs 20 in one run.)",
        ],
        consecutive=True,
    )


GOES_BY_THE_PLAN = (
    ENDPOINT
    + """
from asyncpoll.client import Client, PollLifetimeExceeded, PollPolicy, set_testing

@pytest.fixture(autouse=True)
def instant():
    with set_testing():
        yield

@pytest.mark.async_task("reports.yearly")
def test_foreign(wait_for_terminal):
    def polls(seconds, **options):
        with pytest.raises(PollLifetimeExceeded, match=f"after {seconds} s") as gave_up:
            wait_for_terminal(endpoint("RUNNING"), "/1", **options)
        return gave_up.value.attempt_count

    planned = polls(90)
    assert polls(7, timeout=7) < planned < polls(90, interval=0.1)

@pytest.mark.async_task("reports.yearly")
def test_ours(wait_for_terminal, poll_plan):
    task = "01a22cd1-5617-761b-bc92-fb57ee6aca68"
    body = {"task_id": task, "status": "RUNNING", "version": 1, "outcome": "STILL_RUNNING"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=body))
    with Client("http://ours.test", http=httpx.Client(transport=transport)) as client:
        with pytest.raises(PollLifetimeExceeded, match="after 90 s"):
            wait_for_terminal(client, task)
    assert PollPolicy.from_plan(poll_plan).lifetime_seconds == 90

def test_unknown(wait_for_terminal, poll_plan):
    assert poll_plan.samples == 0
    with pytest.raises(PollLifetimeExceeded, match="after 80 s"):
        wait_for_terminal(endpoint("RUNNING"), "/1")

def test_instant(wait_for_terminal):
    wait_for_terminal(endpoint("RUNNING", "SUCCESS"), "/1")
"""
)


def test_a_wait_goes_by_the_last_runs_plan(suite, pytester):
    """What it says for CI, whichever client waits; the caller's own numbers win. Instant waits are not measured."""
    plan = TaskPlan(
        task="reports.yearly",
        samples=40,
        p95_ms=45_000,
        timeout_seconds=700,
        first_interval_seconds=3,
        ci_timeout_seconds=90,
    )
    write(pytester.path / "measured.json", PlanFile(datetime.now(UTC), (plan,)))
    result = suite(GOES_BY_THE_PLAN, "--asyncpoll-plan", "measured.json")
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*next run's plan*")


def test_a_task_that_this_run_did_not_wait_for_keeps_its_plan(suite, pytester):
    """So does every other task after a run of a few tests."""
    other = TaskPlan(task="other", samples=30, p95_ms=1000, ci_timeout_seconds=30)
    write(pytester.path / PLAN, PlanFile(datetime.now(UTC), (other,)))
    suite(WAITING, "-k", "test_other").assert_outcomes(passed=1, deselected=22)
    assert written(pytester)["other"] == other


NAMED = (
    ENDPOINT
    + """
@pytest.mark.async_task(task="reports.yearly")
def test_named(wait_for_terminal):
    wait_for_terminal(endpoint("SUCCESS"), "/1")

@pytest.mark.async_task(lambda: 1)
def test_misnamed(wait_for_terminal):
    wait_for_terminal(endpoint("SUCCESS"), "/1")
"""
)


def test_a_marker_names_the_task_by_keyword_as_well_and_by_nothing_else_than_text(suite, pytester):
    """An object would be another task in each run."""
    result = suite(NAMED, plugins=())
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*async_task is marked with <function *; give the task's name."])
    assert list(written(pytester)) == ["reports.yearly"]


ANOTHER_RUN = (
    WAITING
    + """
from datetime import UTC, datetime
from asyncpoll.planfile import PlanFile, TaskPlan, write

def test_reads_the_plan(poll_plan):
    other = TaskPlan(task="other", samples=30, p95_ms=1000, ci_timeout_seconds=30)
    write("asyncpoll-plan.json", PlanFile(datetime.now(UTC), (other,)))
"""
)


def test_what_another_run_measured_meanwhile_stays(suite, pytester):
    """It ended after this one had read the plan."""
    suite(ANOTHER_RUN, "-k", "test_other or test_reads").assert_outcomes(passed=2, deselected=22)
    assert set(written(pytester)) == {"other", "test_it.py::test_other"}


def test_two_runs_that_end_together_write_one_after_the_other(tmp_path):
    """Or the second would put its own in place of what the first has just measured."""
    took = Queue()

    def second():
        with turn(tmp_path):
            took.put("second")

    with turn(tmp_path):
        waiting = Thread(target=second)
        waiting.start()
        with pytest.raises(Empty):
            took.get(timeout=0.1)
    waiting.join()
    assert took.get_nowait() == "second"


def test_a_plan_that_is_none_fails_the_tests_that_need_it_and_stays(suite, pytester):
    """In one line, with the remedy, and without another try."""
    (pytester.path / PLAN).write_text("{}")
    result = suite(WAITING, "-k", "test_other or test_sync and 3")
    found = result.parseoutcomes()
    found.pop("warnings", None)
    assert found == {"failed": 2, "deselected": 21}
    result.stdout.fnmatch_lines([f"*{PLAN}: format is missing from the file; make the file again*"])
    result.stdout.fnmatch_lines(["*Or delete it: then this run is the first."])
    result.stdout.no_fnmatch_line("*During handling*")
    assert (pytester.path / PLAN).read_text() == "{}"


@pytest.mark.parametrize(
    ("options", "ini"),
    [((), "asyncpoll_plan ="), (("--asyncpoll-plan=",), "")],
    ids=["project", "run"],
)
def test_a_project_or_a_run_may_want_no_plan(suite, pytester, options, ini):
    """And waits all the same."""
    suite(WAITING, "-k", "test_other", *options, ini=ini).assert_outcomes(passed=1, deselected=22)
    assert not (pytester.path / PLAN).exists()


def test_a_plan_that_cant_be_written_is_said_and_fails_nothing(suite, pytester):
    """As in a checkout that is read-only."""
    result = suite(WAITING, "-k", "test_other", "--asyncpoll-plan", "nowhere/plan.json")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["No plan for the next run: *nowhere/plan.json can't be written*"])


UNUSED = """
import sys

def test_it():
    heavy = {"httpx", "asyncpoll.client", "asyncpoll.planfile", "django"}
    assert not heavy & sys.modules.keys()
"""


def test_a_suite_that_does_not_use_it_pays_nothing(suite, pytester):
    """Neither imports nor a file."""
    suite(UNUSED, plugins=(), apart=True).assert_outcomes(passed=1)
    assert not (pytester.path / PLAN).exists()


@pytest.mark.parametrize(
    "options", [(), ("-p", "no:rerunfailures")], ids=["missing", "switched off"]
)
def test_without_rerunfailures_a_marked_test_is_not_tried_again_and_it_says_so(suite, options):
    """Unless that is what the project wants."""
    result = suite(FLAKY.format(marks="@pytest.mark.async_task", failures=1), *options, plugins=())
    result.assert_outcomes(failed=1)
    said = "1 failed without another try, as pytest-rerunfailures is not" in result.stdout.str()
    assert said is not bool(options)


SHOP = """
import httpx
import pytest
from asyncpoll.client import testing as script
from asyncpoll.client.testing import ScriptedServer

def answer(request):
    if request.method == "POST":
        return httpx.Response(202, headers={"Location": "/reports/7"})
    return httpx.Response(200, json={"status": "COMPLETED", "total": "120.50"})

@pytest.fixture
def shop():
    return httpx.Client(transport=httpx.MockTransport(answer), base_url="http://shop.test")

@pytest.fixture
def server():
    with ScriptedServer([script.answer(version=1), script.success()]) as scripted:
        yield scripted.url
"""


def test_the_documented_tests_run(suite, pytester):
    """As they are written there, and measured by the name they give."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "testing.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    pytester.makeconftest(SHOP)
    suite("\n".join(examples)).assert_outcomes(passed=2)
    assert {name: plan.samples for name, plan in written(pytester).items()} == {
        "shop.yearly_report": 1,
        "demo.dependency_report": 1,
    }

"""asyncpoll.js waits for endpoints that are not ours: the rhythm of asking, and how stuck differs from slow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.browser.scripts import TICKS, Scripts, times

_SAYS = "const says = (status, more) => () => ({ body: { status, ...more } });"


def waited(scripts: Scripts, answers: str, options: str = "{}", ms: int = 100_000) -> Any:
    """What a wait came to for an endpoint that gives these answers, the last one for ever."""
    script = (
        f"{_SAYS} m.play([{answers}]); return m.ending(m.waitForTerminal('/job?id=7', {options}))"
    )
    return scripts.run(script, ms)


def test_five_base_intervals_and_then_growing_ones_up_to_the_cap(scripts: Scripts) -> None:
    """0.4 s, by 1.8, to 5 s; asked as it was given, and caches are kept out of it."""
    over = waited(scripts, "...Array(12).fill(says('RUNNING')), says('COMPLETED', { url: 'x' })")
    assert over["value"] == {"status": "COMPLETED", "url": "x"}
    gaps = [later - earlier for earlier, later in pairwise(times(scripts))]
    expected = [400] * 5 + [720, 1_296, 2_333, 4_199, 5_000, 5_000, 5_000]
    assert gaps == pytest.approx(expected, abs=TICKS)
    assert {(each["method"], each["path"]) for each in scripts.asked} == {("GET", "/job")}
    assert [each["query"] for each in scripts.asked] == [{"id": "7"}] * 13
    assert {each["redirect"] for each in scripts.asked} == {"follow"}


@pytest.mark.parametrize("said", ["status: 'Failed'", "state: 'cancelled'", "status: 'SUCCESS'"])
def test_any_of_the_terminal_words_ends_it(scripts: Scripts, said: str) -> None:
    """In whatever case; a failure is an answer."""
    assert "value" in waited(scripts, f"() => ({{ body: {{ {said} }} }})")


def test_the_terminal_words_can_be_others(scripts: Scripts) -> None:
    """An endpoint has words of its own."""
    over = waited(scripts, "says('SUCCESS'), says('archived')", "{ terminal: ['archived'] }")
    assert over["value"]["status"] == "archived"


def test_an_endpoint_that_only_says_running_is_slow_and_not_stuck(scripts: Scripts) -> None:
    """Nothing is known of its pace."""
    over = waited(scripts, "...Array(15).fill(says('RUNNING')), says('SUCCESS')")
    assert over["value"]["status"] == "SUCCESS"


@pytest.mark.parametrize(
    "answers, options, asked",
    [
        ("says('RUNNING')", "{ heartbeat: true }", 3),
        ("says('PENDING'), says('RUNNING', { done: 1 }), says('RUNNING', { done: 2 })", "{}", 5),
    ],
)
def test_three_same_answers_of_one_that_tells_of_progress_are_stuck(
    scripts: Scripts, answers: str, options: str, asked: int
) -> None:
    """Because somebody says so, or as it has told of some."""
    error = waited(scripts, answers, options)["error"]
    assert error["name"] == "StaleResponseError"
    assert "the same answer again and again" in error["message"]
    assert error["lastAnswer"]["status"] == "RUNNING"
    assert error["sentence"].startswith("The work has come to a halt")
    assert (len(scripts.asked), error["attempts"]) == (asked, asked)


@pytest.mark.parametrize(
    "choice, expected",
    [
        ("'wait'", {"status": "SUCCESS"}),
        ("() => {}", {"status": "SUCCESS"}),
        ("() => { throw new Error('fallback') }", "fallback"),
    ],
)
def test_what_to_do_about_one_that_is_stuck_is_the_callers_choice(
    scripts: Scripts, choice: str, expected: Any
) -> None:
    """Wait on, or something of its own."""
    answers = "...Array(6).fill(says('RUNNING')), says('SUCCESS')"
    ended = waited(scripts, answers, f"{{ heartbeat: true, onStalled: {choice} }}")
    assert (ended["value"] if "value" in ended else ended["error"]["message"]) == expected


@pytest.mark.parametrize(
    "trouble", ["status: 502", "body: '<html>'", "cut: true", "body: { done: true }"]
)
def test_trouble_backs_off(scripts: Scripts, trouble: str) -> None:
    """The same rules as with our own server; JSON without a status is no answer."""
    over = waited(scripts, f"() => ({{ {trouble} }}), says('SUCCESS')")
    assert over["value"]["status"] == "SUCCESS"
    first, second = times(scripts)
    assert second - first == pytest.approx(750, abs=TICKS)


def test_a_refusal_ends_it_at_once(scripts: Scripts) -> None:
    """404 stays 404. The query, which may be a secret, is in no error."""
    error = waited(scripts, "() => ({ status: 404, body: '<html>' })")["error"]
    assert (error["name"], error["status"]) == ("RequestRefused", 404)
    assert error["taskId"].endswith("/job")


def test_it_ends_with_its_time(scripts: Scripts) -> None:
    """A hard limit, also for one that says nothing."""
    for answers in ("says('RUNNING')", "() => ({ after: 9_999_999 })", "() => ({ status: 503 })"):
        ended = waited(scripts, answers, "{ timeoutMs: 9_000 }")
        assert (ended["error"]["name"], ended["at"]) == ("PollLifetimeExceeded", 9_000)
        assert ended["error"]["attempts"] == len(scripts.asked)


def test_its_signal_ends_it(scripts: Scripts) -> None:
    """With the reason given."""
    scripts.begin(
        f"{_SAYS} window.leave = new AbortController(); m.play([says('RUNNING')]);"
        "return m.ending(m.waitForTerminal('/job', { signal: leave.signal }))"
    )
    scripts.go_on(1_000)
    scripts.do("leave.abort(new Error('enough'))")
    scripts.go_on(10_000)
    assert scripts.came()["error"]["message"] == "enough"
    assert len(scripts.asked) <= 4

"""A server that says anything at all: whatever it is, a wait goes on or ends in an error of ours, in time."""

from __future__ import annotations

import json
import math

import pytest

from asyncpoll.client import AsyncpollError
from asyncpoll.client.answer import read_answer
from asyncpoll.client.exchange import Ask, FailureKind, GiveUp, Reply, Request
from asyncpoll.client.many import Many
from asyncpoll.client.polling import Rhythm, ShortPoll
from asyncpoll.client.questions import EveryMilestone, Inbox, Once, UntilOver
from tests.unit.talks import TASK, Talk, problem

ANYTHING = [
    None, True, False, 0, -1, 1.5, float("nan"), float("inf"), 1e308, 10**400, 2**64, "", "x", "\ud800", "\0", "9" * 5000,
    [], [None], ["x"], {}, [{}], [{"task_id": 1}], "SUCCESS", "RUNNING", f"{TASK}:x",
]  # fmt: skip
EVENT = {"version": 3, "kind": "progress", "at": "", "attempt": 1, "progress": 0.1, "message": "m"}
ANSWER = {
    "task_id": TASK, "status": "RUNNING", "version": 3, "progress": 0.5, "message": "m", "attempt": 1, "result": None,
    "error": None, "stalled": False, "outcome": "CHANGED", "reset": False, "should_continue_polling": True, "gap": False,
    "recommended_client_backoff_ms": 10, "hold_granted_ms": 1000, "client_read_timeout_ms": 11_000, "events": [EVENT],
    "next_after": 3, "poll_ticket": "t",
}  # fmt: skip
ENTRY = {"id": "e", "task_id": TASK, "status": "SUCCESS", "result": 1, "error": None}
BUNDLE = {
    "tasks": [ANSWER],
    "problems": [{"task": TASK, **problem(404)}],
    "recommended_client_backoff_ms": 0,
    "hold_granted_ms": 1000,
}
QUESTIONS = {
    "wait": (lambda: UntilOver(TASK), ANSWER, ()),
    "watch": (lambda: EveryMilestone(TASK), ANSWER, ("events",)),
    "many": (lambda: Many([TASK, "other"]), BUNDLE, ("tasks", "problems")),
    "inbox": (lambda: Inbox(5.0), {"entries": [ENTRY]}, ("entries",)),
    "get": (lambda: Once(Request("get", "GET", "tasks/t"), TASK), ANSWER, ()),
    "poll": (lambda: ShortPoll("http://h/x", Rhythm(), ("DONE",), False), {"status": "x"}, ()),
}


def twisted(document, inside):
    """The document with each of its fields, and of what is inside, as anything else."""
    yield from ANYTHING
    for field in document:
        yield from ({**document, field: value} for value in ANYTHING)
    for name in inside:
        (one,) = document[name]
        for field in one:
            yield from ({**document, name: [{**one, field: value}]} for value in ANYTHING)


def survives(question, document, status=200, **headers):
    """Three such answers, or as many as it takes."""
    talk = Talk(question, lifetime=60.0)
    for _ in range(3):
        body = json.dumps(document).encode()
        talk.hear(Reply(status, headers, body, 0.01), 0.01)
        if not isinstance(talk.step, Ask):
            break
        assert 0 <= talk.step.read_seconds <= talk.step.total_seconds <= 60
    if isinstance(talk.step, GiveUp):
        assert isinstance(talk.error, AsyncpollError) and len(str(talk.error)) < 2000
    for one in talk.news:
        assert getattr(one, "progress", None) is None or math.isfinite(one.progress)
    assert all(len(one.error or "") < 2000 for one in talk.conversation.attempts)


@pytest.mark.parametrize(("make", "document", "inside"), QUESTIONS.values(), ids=QUESTIONS)
def test_no_field_of_an_answer_can_break_a_wait(make, document, inside):
    """Of the wrong type, beyond all bounds, or not there."""
    for wrong in twisted(document, inside):
        survives(make(), wrong)


@pytest.mark.parametrize("status", [302, 400, 404, 410, 429, 500, 503])
def test_no_field_of_a_problem_can_break_a_wait(status):
    """Nor make a message as long as a book."""
    for wrong in twisted(problem(status), ()):
        survives(UntilOver(TASK), wrong, status)
        survives(Many([TASK]), wrong, status)


@pytest.mark.parametrize(
    "asked",
    ["9" * 400, "-1", "NaN", "inf", "0x10", "٣", "1.5", "", "5, 7", "\0", "Mon, 30 Nov 99999 10:00:00 GMT",
     "Mon, 30 Nov 2026 10:00:00 +9999", "Wed, 21 Oct 0001 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 -2359"],
)  # fmt: skip
def test_no_retry_after_can_break_a_wait(asked):
    """Compared with any date of the server's."""
    for date in ("", "soon", "Fri, 31 Dec 9999 23:59:59 GMT"):
        survives(UntilOver(TASK), problem(503), 503, **{"retry-after": asked, "date": date})


def test_a_redirect_without_a_target_may_pass_and_no_message_is_as_long_as_a_header():
    """A cache that answers 304 to whom it should not is no wrong address."""
    assert Talk().reply(304).ask.number == Talk().reply(302).ask.number == 2
    assert len(str(Talk().reply(302, location="http://h/" + "a" * 60_000).error)) < 1000
    talk = Talk().reply(200, b"<html>", content_type="x" * 60_000)
    assert len(talk.conversation.attempts[-1].error) < 1000


def test_who_gives_up_learns_what_was_wrong_with_the_last_request():
    """And an id that is no id of ours is none of theirs either."""
    error = Talk(lifetime=5.0).fail(FailureKind.UNCONNECTED, seconds=5).error
    assert "it was never seen, and the last request failed: it went wrong. Wait again" in str(error)
    with pytest.raises(ValueError, match="it must be short and printable"):
        read_answer({**ANSWER, "task_id": "t" * 61})

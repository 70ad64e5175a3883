"""One question about many tasks."""

from __future__ import annotations

import pytest

from asyncpoll.client import Misused, PollLifetimeExceeded, StaleResponseError, TaskNotFound
from asyncpoll.client.exchange import Done, FailureKind
from asyncpoll.client.many import Many
from tests.unit.talks import Talk, problem


def told(*tasks, problems=(), **more):
    """A bundle: (id, version, status) of each task that moved."""
    fields = ("task_id", "version", "status")
    return {
        "tasks": [dict(zip(fields, task, strict=True)) for task in tasks],
        "problems": list(problems),
        **more,
    }


def asked(talk):
    """What the next request asks for."""
    return [value for name, value in talk.ask.request.query if name == "task"]


def test_what_moved_is_taken_and_what_is_over_is_left_out():
    """News are the ends."""
    talk = Talk(Many(["a", "b", "c"], linger_ms=500))
    assert asked(talk) == ["a:0", "b:0", "c:0"]
    assert dict(talk.ask.request.query)["linger_ms"] == "500"
    talk.reply(200, told(("a", 2, "RUNNING"), ("b", 3, "SUCCESS")))
    assert sorted(asked(talk)) == ["a:2", "c:0"]
    talk.reply(200, told(("a", 1, "RUNNING")))
    assert sorted(asked(talk)) == ["a:2", "c:0"]
    talk.reply(200, told(("c", 2, "FAILED"), ("a", 4, "CANCELLED")))
    assert isinstance(talk.step, Done)
    assert [answer.task_id for answer in talk.news] == ["b", "c", "a"]


def test_the_first_that_is_over_is_enough_for_whoever_wants_any():
    """The others are let be."""
    many = Many(["a", "b"], enough=1)
    talk = Talk(many).reply(200, told(("b", 3, "SUCCESS")))
    assert isinstance(talk.step, Done) and many.first(talk.news[0]).task_id == "b"


def test_more_than_a_hundred_take_short_turns():
    """One request after the other, so that no task is late by a whole hold."""
    talk = Talk(Many(map(str, range(250))))
    turns = []
    for _ in range(5):
        turns.append([int(one.partition(":")[0]) for one in asked(talk)])
        assert talk.hold == 2
        talk.reply(200, told(hold_granted_ms=2000), seconds=2)
    assert turns[0] == list(range(100)) and turns[1] == list(range(100, 200))
    assert turns[2] == [*range(200, 250), *range(50)]


def test_an_id_that_cant_be_answered_is_set_aside_and_raised_at_the_end():
    """It never fails the rest; what passes stays."""
    many = Many(["a", "b", "c"])
    passing = {"task": "c", **problem(503, "/problems/unavailable")}
    missing = {"task": "b:0", **problem(404, "/problems/task-not-found")}
    talk = Talk(many).reply(200, told(("a", 2, "SUCCESS"), problems=[missing, passing]))
    assert asked(talk) == ["c:0"]
    talk.reply(200, told(("c", 2, "SUCCESS")))
    with pytest.raises(TaskNotFound, match="task b: 404, the reason"):
        many.in_order(talk.news)
    many.problems.clear()
    with pytest.raises(Misused, match="There is no task to wait for"):
        many.first(None)


def test_the_answers_come_in_the_order_that_was_asked_for():
    """However they ended, and however the ids were written."""
    ids = ["01A22CD1-5617-761B-BC92-FB57EE6ACA68", "01a22cd15617761bbc92fb57ee6aca69"]
    many = Many(ids)
    ended = [(one.lower(), 2, "SUCCESS") for one in many.unfinished[::-1]]
    talk = Talk(many).reply(200, told(*ended))
    assert [answer.task_id[-1] for answer in many.in_order(talk.news)] == ["8", "9"]
    twice = Many(["a", "b", "a"])
    talk = Talk(twice).reply(200, told(("b", 2, "SUCCESS"), ("a", 2, "SUCCESS")))
    assert [answer.task_id for answer in twice.in_order(talk.news)] == ["a", "b", "a"]


def test_who_gives_up_learns_which_are_unfinished():
    """And nothing of those that are over."""
    talk = Talk(Many(["a", "b"]), lifetime=10.0).reply(200, told(("a", 2, "SUCCESS")), seconds=10)
    assert isinstance(talk.error, PollLifetimeExceeded)
    assert talk.error.unfinished == ("b",)
    assert "waiting for b after 10 s and 1 requests; the last answer was that a is SUCCESS" in str(
        talk.error
    )


def test_who_gives_up_on_several_is_told_how_many_and_whose_the_last_answer_was():
    """Never the status of one beside the id of another."""
    error = (
        Talk(Many(["a", "b"]), lifetime=9.0).reply(200, told(("b", 2, "RUNNING")), seconds=9).error
    )
    assert (error.task_id, error.unfinished, error.answer.task_id) == ("a", ("a", "b"), "b")
    assert "2 tasks, the first a, after 9 s and 1 requests; the last answer was that b is" in str(
        error
    )
    assert "b is RUNNING. Wait again for all that is unfinished, or with a longer" in str(error)
    silent = Talk(Many(["a", "b"]), lifetime=5.0).fail(FailureKind.UNCONNECTED, seconds=5).error
    assert "requests; none was ever seen, and the last request failed" in str(silent)


def test_a_task_that_is_stuck_ends_a_wait_for_many_only_where_the_caller_says():
    """The others go on."""
    stuck = told(("a", 2, "RUNNING"))
    stuck["tasks"][0]["stalled"] = True
    assert asked(Talk(Many(["a", "b"]), on_stale="retry").reply(200, stuck)) == ["a:2", "b:0"]
    with pytest.raises(StaleResponseError, match="Task a is RUNNING, but whoever ran it"):
        raise Talk(Many(["a", "b"]), on_stale="raise").reply(200, stuck).error


def test_nothing_to_wait_for_is_done_at_once():
    """Without a request."""
    assert isinstance(Talk(Many([])).step, Done)


def test_an_id_in_another_notation_and_an_end_told_twice_are_taken_once():
    """A proxy in between may have made it so; the wait is over all the same."""
    task_id = "01a22cd1-5617-761b-bc92-fb57ee6aca68"
    talk = Talk(Many([task_id, "b"]))
    talk.reply(200, told((task_id.upper(), 2, "RUNNING")))
    assert f"{task_id}:2" in asked(talk)
    talk.reply(200, told((task_id.upper(), 3, "SUCCESS"), (task_id, 3, "SUCCESS")))
    assert [answer.version for answer in talk.news] == [3] and asked(talk) == ["b:0"]

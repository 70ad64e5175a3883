"""The rules of waiting, with a clock that only the test moves."""

from __future__ import annotations

import pickle

import pytest

from asyncpoll.client import (
    Busy,
    Misused,
    PollLifetimeExceeded,
    PollPolicy,
    Redirected,
    Refused,
    ResponseTooLarge,
    StaleResponseError,
    TaskGone,
    TaskNotFound,
    Unreachable,
)
from asyncpoll.client.exchange import Done, FailureKind, Request
from asyncpoll.client.hosts import Host
from asyncpoll.client.questions import EveryMilestone, Inbox, Once, UntilOver
from tests.unit.talks import TASK, Talk, problem

POLICY = PollPolicy(base_delay=1, max_delay=8)


def test_a_wait_asks_from_the_version_it_knows_and_ends_with_the_task():
    """At once after a change; only GET."""
    talk = Talk()
    assert (talk.ask.request.method, dict(talk.ask.request.query)["client_known_version"]) == (
        "GET",
        "0",
    )
    talk.answer(3)
    assert dict(talk.ask.request.query)["client_known_version"] == "3"
    talk.answer(4, "SUCCESS", result=7)
    assert isinstance(talk.step, Done) and talk.step.value.result == 7
    assert talk.sleeps == [] and [answer.version for answer in talk.news] == [3, 4]


def test_errors_back_off_exponentially_to_the_cap_and_the_first_request_after_one_does_not_hold():
    """min(max_delay, base * 2**retry), without the random part here."""
    talk = Talk(policy=POLICY)
    assert talk.hold == 25
    for _ in range(5):
        talk.fail(FailureKind.UNCONNECTED)
        assert talk.hold == 0
    assert talk.sleeps == [1, 2, 4, 8, 8]
    talk.answer(1)
    assert talk.hold == 25


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_a_random_part_comes_on_top_of_each_backoff(chance):
    """So that those who failed together do not come back together."""
    talk = Talk(policy=POLICY, chance=chance).fail()
    assert talk.sleeps == [pytest.approx(1 + chance)]


def test_a_good_answer_gives_the_budgets_back():
    """Budgets count what comes in a row."""
    talk = Talk(policy=PollPolicy(error_budget=2, lifetime_seconds=1e6))
    for _ in range(5):
        talk.fail().fail().answer(1)
    with pytest.raises(
        Unreachable, match="failed 3 times in a row; the last time: it went wrong"
    ) as raised:
        raise talk.fail().fail().fail().error
    assert len(raised.value.attempts) == 18


def test_being_refused_for_now_does_not_use_up_the_budget_of_errors_nor_the_other_way_round():
    """429 and 503 have a budget of their own."""
    talk = Talk(policy=PollPolicy(error_budget=1, busy_budget=2, lifetime_seconds=1e6))
    talk.reply(503).fail().reply(429)
    assert talk.ask.number == 4
    assert isinstance(talk.reply(503, problem(503)).error, Busy)
    assert "the reason" in str(talk.error)


def test_a_429_wants_longer_holds_and_gets_no_short_one():
    """Asking without a hold is what a 429 is about."""
    assert Talk().reply(429).hold == 25
    assert Talk().reply(503).hold == 0


def test_roll_overs_wait_as_long_as_the_server_says_and_use_up_no_other_budget():
    """They are no errors."""
    talk = Talk(policy=PollPolicy(error_budget=0, busy_budget=0, lifetime_seconds=1e6), chance=0.9)
    talk.answer(1)
    for _ in range(50):
        talk.rolled_over(backoff_ms=120)
    assert set(talk.sleeps) == {0.12} and talk.hold == 25
    assert len(talk.news) == 1


def test_roll_overs_have_a_budget_too():
    """For whoever wants one."""
    talk = Talk(policy=PollPolicy(rollover_budget=2)).answer(1).rolled_over().rolled_over()
    with pytest.raises(PollLifetimeExceeded, match="after 3 holds without news"):
        raise talk.rolled_over().error


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"retry_after": "7"}, 7),
        (
            {
                "retry_after": "Mon, 30 Nov 2026 10:00:07 GMT",
                "date": "Mon, 30 Nov 2026 10:00:00 GMT",
            },
            7,
        ),
        ({"retry_after": "soon"}, 1),
        ({"retry_after": "-3"}, 1),
        ({"retry_after": "0"}, 1),
        ({"retry_after": "Mon, 30 Nov 1999 10:00:07 GMT"}, 1),
        ({}, 1),
    ],
)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_retry_after_is_obeyed_and_spread(status, headers, least):
    """In seconds, or as a date by the server's own clock; never earlier, and later by a random part."""
    assert Talk(policy=POLICY).reply(status, **headers).sleeps == [pytest.approx(least)]
    (late,) = Talk(policy=POLICY, chance=0.999).reply(status, **headers).sleeps
    assert least < late <= least + max(1, least / 4)


def test_no_pause_is_longer_than_what_is_left_of_the_lifetime():
    """Whatever a Retry-After, a hint or a backoff says."""
    for pause in (
        lambda talk: talk.reply(503, retry_after="9" * 30),
        lambda talk: talk.rolled_over(backoff_ms=10**12),
        lambda talk: talk.fail(seconds=1),
    ):
        talk = Talk(policy=PollPolicy(lifetime_seconds=60, base_delay=500, max_delay=500))
        pause(talk)
        assert talk.now == pytest.approx(1_060)
        assert isinstance(talk.error, PollLifetimeExceeded)


def test_the_last_hold_and_the_last_request_end_with_the_lifetime():
    """The hold a little earlier, so that its answer arrives."""
    talk = Talk(lifetime=40.0).answer(1).rolled_over(seconds=24, backoff_ms=0)
    assert talk.hold == pytest.approx(15.5)
    assert talk.ask.total_seconds == pytest.approx(16)
    talk.fail(FailureKind.SILENT, seconds=16)
    assert talk.now == 1_040
    assert isinstance(talk.error, TimeoutError)


def test_who_gave_up_learns_the_task_the_last_answer_the_attempts_and_what_to_tell_the_user():
    """The message centre is only promised to whom the server has promised it."""
    talk = Talk(lifetime=30.0).answer(5, progress=0.5).fail(seconds=30)
    error = talk.error
    assert isinstance(error, PollLifetimeExceeded)
    assert (error.task_id, error.answer.version, error.attempt_count) == (TASK, 5, 2)
    assert [one.error for one in error.attempts] == [None, "it went wrong"]
    assert error.for_user.startswith("Your request is still being worked on in the background")
    assert "message centre" not in str(error)
    error.notified = True
    assert "the result will be in your message centre" in error.for_user
    assert error.for_user in str(error)


def test_a_lifetime_of_nothing_is_one_look():
    """However short, there is one request."""
    talk = Talk(lifetime=0.0)
    assert talk.hold == 0 and talk.ask.total_seconds > 0
    assert isinstance(talk.answer(1).error, PollLifetimeExceeded)
    assert Talk(lifetime=0.0).answer(1, "SUCCESS").step.value.succeeded


def test_a_read_timeout_hardly_above_the_hold_leaves_a_second_for_the_answer():
    """Or every hold that runs out would be an error."""
    talk = Talk().answer(1, hold_granted_ms=25_000, client_read_timeout_ms=25_001)
    assert talk.ask.read_seconds == talk.hold + 1


def test_the_read_timeout_follows_what_the_server_says():
    """It is the hold and the margin that the server asks for, also after an answer that was not held."""
    talk = Talk()
    assert talk.ask.read_seconds == 35
    talk.answer(1, hold_granted_ms=0, client_read_timeout_ms=30_000)
    assert talk.ask.read_seconds == 55
    talk.answer(2, hold_granted_ms=24_000, client_read_timeout_ms=34_000)
    assert talk.ask.read_seconds == 35


@pytest.mark.parametrize("said", [-1, "soon", None, 10**400, True])
def test_a_nonsensical_timeout_changes_nothing(said):
    """Numbers of a broken server are no reason to break."""
    talk = Talk().answer(1, hold_granted_ms=0, client_read_timeout_ms=said)
    assert talk.ask.read_seconds == 35


def test_a_reset_restarts_from_the_version_of_the_answer():
    """The database was restored."""
    talk = Talk(UntilOver(TASK, 9)).answer(2, reset=True)
    assert dict(talk.ask.request.query)["client_known_version"] == "2"
    assert [answer.version for answer in talk.news] == [2]


def test_an_older_version_that_no_reset_explains_tells_nothing():
    """It is out of a cache, or of a server that is behind."""
    talk = Talk(UntilOver(TASK, 9)).answer(2).answer(9, "SUCCESS")
    assert [answer.version for answer in talk.news] == [9]


def test_answers_at_once_that_tell_nothing_are_let_pass_twice_and_then_slowed_down():
    """A proxy's cache must not turn a wait into a hot loop; what may have been cached is asked for by another name."""
    talk = Talk(policy=POLICY).answer(4)
    for _ in range(4):
        talk.answer(4, hold_granted_ms=24_000, seconds=0.01)
    assert talk.sleeps == [1, 2]
    assert "_" in dict(talk.ask.request.query)
    talk.answer(5).answer(5, seconds=0.01)
    assert talk.sleeps == [1, 2] and talk.hold == 25


def test_a_server_with_short_holds_is_not_taken_for_a_cache():
    """What it granted is what counts."""
    talk = Talk().answer(1)
    for _ in range(9):
        talk.answer(1, seconds=0.9, hold_granted_ms=950, recommended_client_backoff_ms=60)
    assert set(talk.sleeps) == {0.06}


@pytest.mark.parametrize("slow", ["DRAINING", "SHED"])
def test_a_hint_to_come_later_is_all_that_is_waited(slow):
    """Servers that drain or shed spread their clients themselves."""
    talk = Talk().answer(1)
    for _ in range(6):
        talk.answer(1, outcome=slow, recommended_client_backoff_ms=2500, hold_granted_ms=0)
    assert set(talk.sleeps) == {2.5}


def test_a_task_whose_heartbeat_has_stopped_raises_unless_the_caller_waits_on():
    """Stuck is not slow."""
    watched = EveryMilestone(TASK)
    for question, more in ((None, {}), (watched, {"events": [], "next_after": 1})):
        assert isinstance(Talk(question).answer(1, stalled=True, **more).error, StaleResponseError)
    assert Talk(on_stale="retry").answer(1, stalled=True).hold == 25


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"",
        b'"x"',
        b"[" * 100_000,
        b'{"task_id": "other", "status": "RUNNING", "version": 1}',
    ],
)
def test_a_200_that_is_no_answer_is_an_error_that_may_pass(body):
    """A login page, an empty body, the answer about another task."""
    talk = Talk(policy=POLICY).reply(200, body)
    assert talk.sleeps == [1] and talk.hold == 0
    assert "can't be used" in talk.conversation.attempts[-1].error


@pytest.mark.parametrize(
    ("field", "value"),
    [("status", "NEW"), ("status", None), ("version", "3"), ("version", True), ("version", -1)],
)
def test_an_answer_with_a_field_that_is_not_of_the_protocol_is_an_error(field, value):
    """It names the field and the rule."""
    talk = Talk().reply(200, {"task_id": TASK, "status": "RUNNING", "version": 1, field: value})
    assert f"{field} is {value!r}; it must be" in talk.conversation.attempts[-1].error


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (404, "/problems/task-not-found", TaskNotFound),
        (410, "/problems/task-gone", TaskGone),
        (401, "/problems/unauthenticated", Refused),
        (403, "/problems/forbidden", Refused),
        (400, "/problems/invalid-parameter", Refused),
    ],
)
def test_a_refusal_ends_the_wait_at_once_with_its_problem(status, kind, error):
    """What will not pass is not tried again."""
    talk = Talk().reply(status, problem(status, kind))
    assert type(talk.error) is error
    assert (talk.error.type, talk.error.status) == (kind, status)
    assert "the reason" in str(talk.error)


@pytest.mark.parametrize("status", [408, 425, 500, 502, 503, 504, 599])
def test_statuses_that_pass_are_tried_again(status):
    """With a page or without."""
    assert Talk().reply(status, b"<html>").ask.number == 2


def test_a_page_that_is_not_ours_means_a_wrong_address_unless_ours_came_from_there_before():
    """While a deployment replaces the server, a gateway may know no route."""
    assert "is the base URL right?" in str(Talk().reply(404, b"<html>").error)
    assert Talk().answer(1).reply(404, b"<html>").ask.number == 3


def test_a_redirect_is_an_error_that_does_not_show_where_the_query_leads():
    """The token would go along."""
    talk = Talk(base_url="http://here/").reply(302, location="https://login.example/?state=secret")
    assert isinstance(talk.error, Redirected)
    assert "302, a redirect to https://login.example/" in str(talk.error)
    assert "secret" not in str(talk.error)


def test_an_answer_that_is_too_long_and_a_certificate_that_is_refused_are_not_tried_again():
    """They would be the same the next time."""
    assert isinstance(Talk().fail(FailureKind.TOO_LARGE).error, ResponseTooLarge)
    assert "certificate" in str(Talk().fail(FailureKind.UNTRUSTED).error)


def test_a_kept_connection_that_dies_at_once_is_tried_once_more_on_a_new_one():
    """After a random moment up to a second, without using up a budget; a second time is an error like any other."""
    talk = Talk(policy=PollPolicy(error_budget=1), chance=0.5).answer(1)
    talk.fail(seconds=0.1, reused=True)
    assert talk.sleeps == [0.5] and talk.ask.on_new_connection and talk.hold == 25
    talk.fail(seconds=0.1, reused=True)
    assert talk.sleeps[-1] >= 1 and not talk.ask.on_new_connection and talk.hold == 0


@pytest.mark.parametrize(
    "failure", [{"seconds": 0.3, "reused": True}, {"seconds": 0.1, "reused": False}]
)
def test_any_other_death_of_a_connection_backs_off(failure):
    """Never an immediate reconnect."""
    talk = Talk(policy=POLICY).answer(1).fail(**failure)
    assert talk.sleeps == [1] and not talk.ask.on_new_connection


def test_a_submission_that_never_arrived_is_not_said_to_go_on_in_the_background():
    """Only what waits gives up waiting."""
    question = Once(Request("submit", "POST", "tasks", body={}), "the submission")
    talk = Talk(question, lifetime=5.0).fail(seconds=5)
    assert isinstance(talk.error, Unreachable)
    assert "did not succeed after 5 s: it went wrong; look whether the server is well" in str(
        talk.error
    )


def test_milestones_are_told_once_and_from_the_beginning_after_a_reset():
    """Replayed from where the client was."""
    question = EveryMilestone(TASK, 3)
    talk = Talk(question).answer(5, events=[event(4), event(5)], next_after=5)
    talk.answer(5, events=[event(4), event(5)], next_after=5, hold_granted_ms=1000)
    talk.answer(4, events=[event(4)], next_after=4)
    assert question.last.version == 5
    assert [one.version for one in talk.news] == [4, 5]
    assert dict(talk.ask.request.query)["after"] == "5"
    talk.answer(2, reset=True, events=[event(1), event(2)], next_after=2)
    assert [one.version for one in talk.news[2:]] == [1, 2]
    talk.answer(3, "SUCCESS", events=[event(3)], next_after=3, should_continue_polling=False)
    assert talk.step.value.succeeded


def test_a_gap_in_the_history_is_told_with_the_next_milestone_there_is():
    """Also where nothing of it is kept; a watch goes on beyond it."""
    talk = Talk(EveryMilestone(TASK))
    talk.answer(7, events=[], gap=True, next_after=7)
    assert talk.news == [] and dict(talk.ask.request.query)["after"] == "7"
    talk.answer(9, events=[event(8), event(9)], next_after=9)
    assert [(one.version, one.gap) for one in talk.news] == [(8, True), (9, False)]


def test_milestones_that_are_newer_than_the_task_they_came_with_are_told_once():
    """A server reads the history after the task."""
    talk = Talk(EveryMilestone(TASK)).answer(1, events=[event(1), event(2)], next_after=2)
    talk.answer(3, events=[event(2), event(3)], next_after=3)
    assert [one.version for one in talk.news] == [1, 2, 3]
    talk.answer(3, events=[], next_after=10**9)
    assert dict(talk.ask.request.query)["after"] == "3"


def event(version):
    """An entry of a history."""
    return {"version": version, "kind": "progress", "at": "", "attempt": 1}


def test_an_inbox_is_waited_for_as_long_as_the_caller_says():
    """Longer than one hold; with nothing in it the wait ends, as it would with a server that is away."""
    talk = Talk(Inbox(60.0))
    for _ in range(3):
        talk.reply(200, {"entries": []}, seconds=20)
    entry = {"id": "e", "task_id": "t", "status": "SUCCESS"}
    assert talk.reply(200, {"entries": [entry]}).step.value[0].id == "e"
    talk = Talk(Inbox(7.0))
    assert talk.hold == 7
    assert talk.reply(200, {"entries": []}, seconds=8).step.value == ()
    assert Talk(Inbox(0.0)).reply(200, {"entries": []}).step.value == ()


@pytest.mark.parametrize("lifetime", [float("nan"), float("inf"), -1.0])
def test_a_wait_without_an_end_is_refused(lifetime):
    """No caller switches that rule off."""
    with pytest.raises(Misused, match="every wait ends"):
        Talk(lifetime=lifetime)


def test_errors_can_be_sent_to_another_process():
    """With all they know."""
    for talk in (
        Talk(lifetime=0.0).answer(3),
        Talk().reply(403, problem(403)),
        Talk().answer(1, stalled=True),
    ):
        error = pickle.loads(pickle.dumps(talk.error))
        assert (type(error), str(error)) == (type(talk.error), str(talk.error))
        assert error.attempts == talk.error.attempts != ()


def test_what_one_wait_learns_of_its_gateway_the_next_one_keeps_to():
    """Cut twice at the same age: less is asked for, by all waits at that host."""
    host = Host()
    talk = Talk(host=host).answer(1)
    talk.fail(seconds=20).answer(1).fail(seconds=20.4)
    assert host.hold_ceiling == pytest.approx(15)
    assert Talk(host=host).hold == pytest.approx(15)
    assert talk.answer(1).hold == pytest.approx(15)


def test_a_gateway_that_drops_connections_without_a_word_is_learnt_as_well():
    """Nothing comes in all the time that the server may take, twice."""
    host = Host()
    talk = Talk(host=host).answer(1).fail(FailureKind.SILENT, seconds=35)
    talk.answer(1).fail(FailureKind.SILENT, seconds=35)
    assert host.hold_ceiling == pytest.approx(0.75 * 25)
    impatient = Host()
    talk = Talk(host=impatient, lifetime=60.0).answer(1).fail(FailureKind.SILENT, seconds=10)
    talk.answer(1).fail(FailureKind.SILENT, seconds=10)
    assert impatient.hold_ceiling is None


def test_other_calls_than_waits_end_after_a_time_of_their_own():
    """Nobody waits ten minutes for a submission to be sent."""
    talk = Talk(Once(Request("get", "GET", "tasks/t"), "t"))
    assert "did not succeed after 60 s" in str(talk.fail(FailureKind.SILENT, seconds=60).error)


def test_a_longer_hold_that_was_answered_refutes_a_cut():
    """And what was not held teaches nothing."""
    host = Host()
    talk = Talk(host=host).answer(1).fail(seconds=10).rolled_over(seconds=0.01)
    talk.rolled_over(seconds=24).fail(seconds=10)
    assert host.hold_ceiling is None
    host, once = Host(), Once(Request("get", "GET", "tasks/t"), "t")
    Talk(once, host=host, policy=PollPolicy(call_seconds=99)).fail(seconds=5).fail(seconds=5)
    assert host.hold_ceiling is None


def test_a_gateways_page_after_a_while_is_a_cut_as_well():
    """504, or the 503 of another, at the same age, twice; a problem document is the server's own."""
    host = Host()
    talk = Talk(host=host).answer(1).reply(503, b"<html>", seconds=10).answer(1)
    talk.reply(504, b"<html>", seconds=10)
    assert host.hold_ceiling == pytest.approx(7.5)
    host = Host()
    talk = Talk(host=host).answer(1).reply(503, problem(503), seconds=10).answer(1)
    talk.reply(503, problem(503), seconds=10)
    assert host.hold_ceiling is None

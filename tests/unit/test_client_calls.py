"""What is sent, what is refused before it is sent, and what may be promised."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from asyncpoll.client import (
    Misused,
    PollLifetimeExceeded,
    PollPolicy,
    Refused,
    TaskFailed,
    Unreachable,
    set_testing,
)
from asyncpoll.client.address import address
from asyncpoll.client.answer import read_answer
from asyncpoll.client.calls import Calls, call_of
from asyncpoll.client.promises import wanted
from asyncpoll.client.testing import Act, ScriptedServer, answer, failure, page, problem, success
from asyncpoll.planfile import TaskPlan
from tests.sdk import KINDS, Caller
from tests.support import free_port

QUICK = PollPolicy(base_delay=0.01, max_delay=0.05, lifetime_seconds=30)
ENTRY = {"id": "e1", "task_id": "t1", "task": "work", "status": "SUCCESS", "result": 1}


@pytest.fixture(params=KINDS)
def kind(request):
    """Either driver."""
    return request.param


def centre(accepts=True):
    """A server whose tasks never end, with a message centre."""

    def act(received):
        if received.path.endswith("/notify") or b'"notify"' in received.body:
            refused = problem(403, "/problems/forbidden", detail="no scope")
            return answer(version=1) if accepts else refused
        if received.path.endswith("/inbox"):
            return Act(document={"entries": [ENTRY]})
        return answer(version=1, after=min(received.hold_seconds, 0.2))

    return act


@pytest.mark.parametrize("when", ["when giving up", "at submit", "by itself"])
async def test_the_message_centre_is_promised_once_the_server_has_accepted(kind, when):
    """A separate, repeatable call."""
    with ScriptedServer(centre()) as server:
        async with Caller(kind, server.url, policy=QUICK) as client:
            if when == "at submit":
                await client.submit("work", notify=True)
            if when == "by itself":
                await client.notify("submitted", inbox=True)
            with pytest.raises(PollLifetimeExceeded) as raised:
                told = "inbox" if when == "when giving up" else None
                await client.wait("submitted", lifetime=0.3, notify=told)
    assert raised.value.notified and "message centre" in raised.value.for_user
    (asked,) = [one for one in server.requests if one.method == "POST"]
    if when == "at submit":
        assert json.loads(asked.body) == {"task": "work", "notify": {"inbox": True}}
    else:
        assert asked.path.endswith("/submitted/notify")
        assert json.loads(asked.body) == {"inbox": True}
    assert {one.method for one in server.requests if "long_poll" in one.target} == {"GET"}


async def test_of_many_tasks_the_message_centre_is_promised_once_all_were_accepted(kind):
    """Whoever reads the sentence waits for each of them."""
    with ScriptedServer([answer(), answer(), Act(document={"tasks": []})]) as server:
        async with Caller(kind, server.url) as client:
            for name, promised in (("a", False), ("b", True)):
                await client.notify(name, inbox=True)
                with pytest.raises(PollLifetimeExceeded) as raised:
                    await client.wait_all(["a", "b"], lifetime=0)
                assert raised.value.notified is promised


async def test_nothing_is_promised_that_was_refused_or_that_is_no_message_centre(kind):
    """A webhook tells a program."""
    with ScriptedServer(centre(accepts=False)) as server:
        async with Caller(kind, server.url, policy=QUICK) as client:
            with pytest.raises(PollLifetimeExceeded) as raised:
                await client.wait("t1", lifetime=0.2, notify=True)
            assert "no scope" in raised.value.__notes__[0]
            assert not raised.value.notified and "message centre" not in raised.value.for_user
            server.requests.clear()
            with pytest.raises(Refused, match="no scope"):
                await client.submit("work", notify=True)
            assert len(server.requests) == 1
    with ScriptedServer(centre()) as server:
        async with Caller(kind, server.url, policy=QUICK) as client:
            with pytest.raises(PollLifetimeExceeded) as raised:
                await client.wait("t1", lifetime=0.2, notify="https://example.org/hook")
    assert not raised.value.notified
    assert json.loads(server.requests[-1].body) == {"webhook": "https://example.org/hook"}


async def test_an_inbox_is_read_held_and_emptied(kind):
    """Entries stay until they are acknowledged."""
    with ScriptedServer(centre()) as server:
        async with Caller(kind, server.url) as client:
            (entry,) = await client.inbox(hold_seconds=7)
            await client.acknowledge(entry)
            await client.acknowledge("e/2")
    assert (entry.id, entry.task_id, entry.status, entry.result) == ("e1", "t1", "SUCCESS", 1)
    assert [one.path for one in server.requests] == [
        "/api/v1/inbox",
        "/api/v1/inbox/e1/ack",
        "/api/v1/inbox/e%2F2/ack",
    ]
    assert server.requests[0].hold_seconds == 7


async def test_a_ticket_reads_one_task_without_a_token(kind):
    """It goes with each request."""
    with ScriptedServer([success()]) as server:
        async with Caller(kind, server.url + "/jobs/api", ticket="t1:abc") as client:
            await client.wait("t1")
    (received,) = server.requests
    assert received.path == "/jobs/api/tasks/t1/long_poll" and received.query["ticket"] == "t1:abc"
    assert "authorization" not in received.headers


async def test_a_failed_task_is_returned_and_raised_on_demand(kind):
    """With its error."""
    with ScriptedServer([failure("ValueError", "limit is 0")]) as server:
        async with Caller(kind, server.url) as client:
            over = await client.wait("t1")
    with pytest.raises(TaskFailed, match="Task t1 is FAILED: ValueError: limit is 0"):
        over.raise_for_failure()


@pytest.mark.parametrize(
    ("base_url", "api"),
    [
        ("http://h:8000", "http://h:8000/api/v1/"),
        ("https://h/", "https://h/api/v1/"),
        ("https://h/jobs/v1/", "https://h/jobs/v1/"),
    ],
)
def test_a_base_url_without_a_path_means_the_usual_one(base_url, api):
    """Any other path is taken as it is."""
    assert address(base_url, None, None).base_url == api


@pytest.mark.parametrize(
    "base_url",
    [
        "h:8000",
        "ftp://h",
        "",
        "http://",
        "http://u:secret@h",
        "http://h?x=secret",
        "u:secret@h",
        "ftp://u:secret@h",
        "http://[::1",
        "http://h:x",
    ],
)
def test_a_base_url_that_can_not_be_is_refused_without_showing_secrets(base_url):
    """At once, and not after a budget of errors."""
    with pytest.raises(Misused, match="base_url") as raised:
        address(base_url, None, None)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ümlaut"])
def test_a_token_that_fits_into_no_header_is_refused_without_showing_it(token):
    """It would end up in the error of whoever tries to send it."""
    with pytest.raises(Misused, match="token is empty or has") as raised:
        address("http://h", token, None)
    assert not token or token not in str(raised.value)


@pytest.mark.parametrize("cursor", ["", "t1", "t1:", "t1:x", "t2:3", ":3"])
def test_a_cursor_that_is_none_of_this_task_is_refused(cursor):
    """Before anything is sent."""
    with Caller("sync", "http://h").client as client, pytest.raises(Misused, match="cursor is"):
        client.wait("t1", cursor=cursor)


def test_a_time_without_a_zone_and_a_notify_of_no_sense_are_refused():
    """They name the value and the remedy."""
    with pytest.raises(Misused, match="give it a time zone"):
        call_of((), None, datetime(2026, 1, 1))
    assert call_of((), None, datetime(2026, 1, 1, tzinfo=UTC))["run_at"].endswith("+00:00")
    with pytest.raises(Misused, match="give True or 'inbox' for the inbox, or the https://"):
        wanted("http://example.org")
    with pytest.raises(Misused, match="either inbox=True or webhook="):
        Caller("sync", "http://h").client.notify("t1")


def test_a_policy_comes_from_a_plan_and_refuses_what_makes_no_sense():
    """What the plan does not know is the default."""
    plan = TaskPlan(task="x", samples=50, timeout_seconds=90, hold_seconds=12)
    policy = PollPolicy.from_plan(plan, base_delay=2)
    assert (policy.lifetime_seconds, policy.hold_seconds, policy.base_delay) == (90, 12, 2)
    assert PollPolicy.from_plan({}) == PollPolicy.from_plan(SimpleNamespace()) == PollPolicy()
    wrongs = [{"hold_seconds": -1}, {"lifetime_seconds": float("nan")}, {"base_delay": 0}]
    for wrong in (*wrongs, {"max_delay": 0}, {"lifetime_seconds": float("inf")}):
        with pytest.raises(Misused, match=next(iter(wrong))):
            PollPolicy(**wrong)
    with pytest.raises(Misused, match="hold_seconds is '5'; give seconds"):
        PollPolicy(hold_seconds="5")


def test_numbers_that_can_not_be_are_none_and_an_outcome_of_tomorrow_is_unknown():
    """A later server may say more than this client knows."""
    read = read_answer(
        {
            "task_id": "t1",
            "status": "RUNNING",
            "version": 1,
            "progress": 10**400,
            "outcome": ["NEW"],
            "recommended_client_backoff_ms": float("inf"),
        }
    )
    assert (read.progress, read.outcome, read.backoff_ms) == (None, None, 0)


TICKETS = {"t1": "t1:abc", "t2": "t2:def"}


async def test_many_tasks_are_waited_for_with_a_ticket_each(kind):
    """Each request has those of the tasks that it reads; the mapping may grow meanwhile."""
    ends = [{"task_id": one, "status": "SUCCESS", "version": 2} for one in TICKETS]
    mine = dict(TICKETS)
    with ScriptedServer([Act(document={"tasks": ends}), success(), success()]) as server:
        async with Caller(kind, server.url, ticket=mine) as client:
            assert len(await client.wait_all(["t1", "t2"])) == 2
            await client.wait("t2")
            mine["t3"] = "t3:ghi"
            await client.wait("t3")
            with pytest.raises(Misused, match="ticket has none for task t4; add the poll_ticket"):
                await client.wait_all(["t1", "t4"])
    assert {one.connection for one in server.requests} == {1}
    assert [one.query.get("linger_ms") for one in server.requests] == ["250", None, None]
    asked = [parse_qs(urlsplit(one.target).query)["ticket"] for one in server.requests]
    assert asked == [["t1:abc", "t2:def"], ["t2:def"], ["t3:ghi"]]


async def test_a_ticket_only_reads_and_leaves_all_else_to_the_token(kind):
    """Also the tasks that it is not for."""
    for ticket in ("t1:abc", TICKETS):
        with ScriptedServer([success()]) as server:
            async with Caller(kind, server.url, token="ap_1_2", ticket=ticket) as client:
                await client.get("t1")
                await client.cancel("t1")
                await client.submit("work")
                if ticket is TICKETS:
                    await client.get("t9")
        read, *others = ["ticket" in one.query for one in server.requests]
        assert read and others in ([False] * 2, [False] * 3)


def test_no_more_tickets_go_along_than_fit_into_an_address():
    """Gateways take 8 KB for a request's first line; the others have their turn."""
    tickets = {str(number): "x" * 120 for number in range(50)}
    to = address("http://h", None, tickets)
    many, _ = Calls(to, PollPolicy()).many(tickets, None, "retry")
    assert len(to.tickets_for(many.request(25, None).tasks)) == 40
    assert many.longest_hold() == 2


async def test_a_single_ticket_for_several_tasks_is_refused_with_what_to_give_instead(kind):
    """The server would say that the others do not exist."""
    async with Caller(kind, "http://h", ticket="t1:abc") as client:
        with pytest.raises(Misused, match="ticket is that of one task, and 2 are asked for; give"):
            await client.wait_all(["t1", "t2"])


async def test_a_submission_to_nobody_ends_when_the_caller_says_and_can_be_repeated(kind):
    """With the key that makes it one task, whether or not the first arrived."""
    attempts, url = [], f"http://127.0.0.1:{free_port()}"
    with set_testing():
        async with Caller(kind, url, hooks=[attempts.append]) as client:
            with pytest.raises(Unreachable) as raised:
                await client.submit("work", lifetime=9, idempotency_key="k 1")
            with pytest.raises(Unreachable, match="did not succeed after 60 s: ConnectError"):
                await client.submit("work")
    assert "did not succeed after 9 s: ConnectError" in str(raised.value)
    assert "submit it again with the idempotency key 'k 1', with which it is one task" in str(
        raised.value
    )
    first = attempts[: len(raised.value.attempts)]
    assert first[-1].next_in is None
    assert [one.next_in for one in first[:-1]] == [one.delay_before for one in first[1:]]


async def test_an_inbox_that_never_answered_does_not_speak_of_a_task(kind):
    """Nothing goes on in the background."""
    with ScriptedServer([page(502)]) as server, set_testing():
        async with Caller(kind, server.url) as client:
            with pytest.raises(
                Unreachable, match="/inbox did not succeed after 4 s: 502"
            ) as raised:
                await client.inbox(hold_seconds=3)
    assert "background" not in str(raised.value) and "task" not in str(raised.value)

"""What is sent, what is refused before it is sent, and what may be promised."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from asyncpoll.client import (
    Misused,
    NotifyFailed,
    PollLifetimeExceeded,
    PollPolicy,
    TaskFailed,
)
from asyncpoll.client.address import address
from asyncpoll.client.answer import read_answer
from asyncpoll.client.calls import submission, wanted
from asyncpoll.client.testing import Act, ScriptedServer, answer, failure, problem, success
from asyncpoll.planfile import TaskPlan
from tests.sdk import KINDS, Caller

QUICK = PollPolicy(base_delay=0.01, max_delay=0.05, lifetime_seconds=30)
ENTRY = {"id": "e1", "task_id": "t1", "task": "work", "status": "SUCCESS", "result": 1}


@pytest.fixture(params=KINDS)
def kind(request):
    """Either driver."""
    return request.param


def centre(accepts=True):
    """A server whose tasks never end, with a message centre."""

    def act(received):
        if received.path.endswith("/notify"):
            return Act(202, {"inbox": True}) if accepts else problem(403, detail="no scope")
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
    notified = [one for one in server.requests if one.path.endswith("/submitted/notify")]
    assert [json.loads(one.body) for one in notified] == [{"inbox": True}]
    assert {one.method for one in server.requests if "long_poll" in one.target} == {"GET"}


async def test_nothing_is_promised_that_was_refused_or_that_is_no_message_centre(kind):
    """A webhook tells a program."""
    with ScriptedServer(centre(accepts=False)) as server:
        async with Caller(kind, server.url, policy=QUICK) as client:
            with pytest.raises(PollLifetimeExceeded) as raised:
                await client.wait("t1", lifetime=0.2, notify=True)
            assert "no scope" in raised.value.__notes__[0]
            assert not raised.value.notified and "message centre" not in raised.value.for_user
            with pytest.raises(NotifyFailed, match="is submitted, but") as failed:
                await client.submit("work", notify=True)
            assert failed.value.answer.task_id == "submitted"
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
        submission((), None, datetime(2026, 1, 1))
    assert submission((), None, datetime(2026, 1, 1, tzinfo=UTC))["run_at"].endswith("+00:00")
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
    for wrong in ({"hold_seconds": -1}, {"lifetime_seconds": float("nan")}, {"base_delay": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            PollPolicy(**wrong)
    with pytest.raises(TypeError, match="hold_seconds is '5'"):
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

"""Waiting for endpoints that are not ours: the rhythm of asking, and how stuck differs from slow."""

from __future__ import annotations

import asyncio
import json
from itertools import islice
from types import SimpleNamespace

import httpx
import pytest

from asyncpoll.client import (
    AsyncpollError,
    Misused,
    PollLifetimeExceeded,
    Redirected,
    Refused,
    StaleResponseError,
    Unreachable,
    await_for_terminal,
    set_testing,
    wait_for_terminal,
)
from asyncpoll.client.polling import Rhythm
from asyncpoll.client.testing import Act, ScriptedServer, page, problem, redirect
from asyncpoll.planfile import TaskPlan
from tests.sdk import KINDS


@pytest.fixture(params=KINDS)
def kind(request):
    """Either driver."""
    return request.param


def says(status, **more):
    """An answer of an endpoint that is not ours."""
    return Act(document={"status": status, **more})


async def waited(kind, server, **options):
    """Wait for the endpoint. Gives what it said last, and the pauses before each request."""
    attempts = []
    options = {"hooks": [attempts.append], **options}
    url = options.pop("url", "/job")
    mine = {"base_url": server.url, "follow_redirects": options.pop("follow_redirects", False)}
    with set_testing():
        if kind == "sync":
            with httpx.Client(**mine) as client:
                over = await asyncio.to_thread(wait_for_terminal, client, url, **options)
        else:
            async with httpx.AsyncClient(**mine) as client:
                over = await await_for_terminal(client, url, **options)
    return over, [round(one.delay_before, 3) for one in attempts]


async def test_five_base_intervals_and_then_growing_ones_up_to_the_cap(kind):
    """0.4 s, by 1.8, to 5 s."""
    with ScriptedServer([says("RUNNING")] * 12 + [says("COMPLETED", url="x")]) as server:
        over, pauses = await waited(kind, server)
    assert over == {"status": "COMPLETED", "url": "x"}
    assert pauses == [0, *[0.4] * 5, 0.72, 1.296, 2.333, 4.199, 5, 5, 5]
    assert {received.headers["cache-control"] for received in server.requests} == {"no-cache"}


async def test_a_plan_says_all_of_it_where_it_knows(kind):
    """By 2, and the plan's own numbers."""
    plan = TaskPlan(
        task="x", samples=99, first_interval_seconds=0.1, first_polls=2, timeout_seconds=9
    )
    with ScriptedServer([says("RUNNING")]) as server:
        with pytest.raises(PollLifetimeExceeded, match="after 9 s") as raised:
            await waited(kind, server, plan=plan)
    pauses = [round(one.delay_before, 3) for one in raised.value.attempts]
    assert pauses[:6] == [0, 0.1, 0.1, 0.2, 0.4, 0.8]
    assert pauses[1:6] == [round(wait, 3) for wait in islice(plan.intervals(), 5)]


@pytest.mark.parametrize("word", ["SUCCESS", "completed", "Failed", "CANCELLED"])
async def test_any_of_the_terminal_words_ends_it(kind, word):
    """In whatever case; a failure is an answer."""
    with ScriptedServer([Act(document={"state": word})]) as server:
        assert (await waited(kind, server))[0] == {"state": word}


async def test_the_terminal_words_can_be_others(kind):
    """An endpoint has words of its own."""
    with ScriptedServer([says("SUCCESS"), says("archived")]) as server:
        assert (await waited(kind, server, terminal=["archived"]))[0]["status"] == "archived"


async def test_an_endpoint_that_only_says_running_is_slow_and_not_stuck(kind):
    """Nothing is known of its pace."""
    with ScriptedServer([says("RUNNING")] * 20 + [says("SUCCESS")]) as server:
        assert (await waited(kind, server))[0]["status"] == "SUCCESS"


async def test_three_same_answers_after_two_different_ones_are_stuck(kind):
    """It tells of progress, and does not any more."""
    script = [says("PENDING"), says("RUNNING", done=1), *[says("RUNNING", done=2)] * 3]
    with ScriptedServer(script) as server:
        with pytest.raises(StaleResponseError, match="the same answer 3 times in a row") as raised:
            await waited(kind, server)
    assert raised.value.answer == {"status": "RUNNING", "done": 2}
    assert len(server.requests) == 5


async def test_an_endpoint_with_a_heartbeat_is_stuck_without_having_changed(kind):
    """The caller knows that it tells of progress."""
    with ScriptedServer([says("RUNNING")]) as server, pytest.raises(StaleResponseError):
        await waited(kind, server, heartbeat=True)
    assert len(server.requests) == 3


async def test_what_to_do_about_a_stuck_task_is_the_callers_choice(kind):
    """Go on, or something else instead."""
    script = [says("RUNNING")] * 6 + [says("SUCCESS")]
    with ScriptedServer(script) as server:
        over, _ = await waited(kind, server, heartbeat=True, on_stale="retry")
    assert over["status"] == "SUCCESS"
    with ScriptedServer(script) as server:
        over, _ = await waited(kind, server, heartbeat=True, on_stale=lambda error: "instead")
    assert over == "instead"


async def test_a_fallback_of_asyncio_is_awaited():
    """As it may have to ask somebody."""

    async def instead(error):
        return error.answer["status"]

    with ScriptedServer([says("RUNNING")]) as server:
        over, _ = await waited("async", server, heartbeat=True, on_stale=instead)
    assert over == "RUNNING"


async def test_trouble_backs_off_and_a_refusal_ends_it(kind):
    """The same rules as with our own server."""
    with ScriptedServer([page(502), page(200), says("SUCCESS")]) as server:
        assert (await waited(kind, server))[0]["status"] == "SUCCESS"
    with ScriptedServer([page(404)]) as server:
        with pytest.raises(Refused, match="404, without a problem document"):
            await waited(kind, server)
    with ScriptedServer([Act(document={"done": True})]) as server:
        with pytest.raises(Unreachable, match="it has no status"):
            await waited(kind, server, timeout=1e6)
    with ScriptedServer([problem(503)]) as server:
        with pytest.raises(PollLifetimeExceeded):
            await waited(kind, server)


@pytest.mark.parametrize("field", ["status", "state"])
async def test_who_gives_up_learns_what_the_endpoint_said_last(kind, field):
    """In its own word, with a remedy that there is here."""
    with ScriptedServer([Act(document={field: "alive"})]) as server:
        with pytest.raises(PollLifetimeExceeded) as raised:
            await waited(kind, server, timeout=2)
    said = str(raised.value)
    assert "requests; it was 'alive' last" in said
    assert ". Wait again, or with a longer timeout. To the user: " in said


async def test_redirects_are_followed_as_far_as_the_httpx_client_does(kind):
    """It is the caller's client, and there is no token of ours."""
    with ScriptedServer([redirect(), says("SUCCESS")]) as server:
        with pytest.raises(Redirected, match="or a client that follows redirects"):
            await waited(kind, server)
        over, _ = await waited(kind, server, follow_redirects=True)
        assert over["status"] == "SUCCESS"
        server.play([redirect()] * 10 + [says("SUCCESS")])
        assert (await waited(kind, server, follow_redirects=True))[0]["status"] == "SUCCESS"
        server.play([redirect()])
        with pytest.raises(Redirected, match="TooManyRedirects"):
            await waited(kind, server, follow_redirects=True)
        server.play([redirect("file:///etc/passwd")])
        with pytest.raises(Redirected, match="UnsupportedProtocol"):
            await waited(kind, server, follow_redirects=True)


async def test_a_url_that_leads_nowhere_is_refused_at_once(kind):
    """And not after a budget of errors."""
    with pytest.raises(Misused, match="UnsupportedProtocol"):
        await waited(kind, SimpleNamespace(url=""))


@pytest.mark.parametrize(
    "host", ["a" * 64 + ".com", "a..b", "[::1", "127.0.0.1:x", "ex\u2100mple.com"]
)
async def test_a_host_that_can_be_none_is_an_error_of_ours(kind, host):
    """Wherever on the way that is noticed: a resolver says of a label that is too long what it says of any unknown name."""
    with pytest.raises(AsyncpollError) as raised:
        await waited(kind, SimpleNamespace(url=""), url=f"http://me:hunter2@{host}/job?key=hunter2")
    assert "hunter2" not in str(raised.value)


async def test_nobody_can_read_the_secrets_of_a_url(kind):
    """Neither in what hooks get, nor in any error: a user, what follows `#`, and in errors the query."""
    said = []
    for script in ([says("RUNNING")], [page(404)], [redirect("http://me:hunter2@example.org/")]):
        with ScriptedServer(script) as server:
            url = server.url.replace("//", "//me:hunter2@") + "/job#hunter2"
            with pytest.raises(AsyncpollError) as raised:
                await waited(
                    kind, server, url=url, heartbeat=True, hooks=[lambda one: said.append(one.url)]
                )
            said.append(repr(raised.value) + str(raised.value))
    assert len(said) > 3 and "hunter2" not in "".join(said)


def test_a_rhythm_that_makes_no_sense_is_refused():
    """It names the value and the rule."""
    for rhythm in ({"interval": 0}, {"interval": 9}, {"growth": 0.5}):
        with pytest.raises(Misused, match="give"):
            Rhythm(**rhythm)


def test_a_plan_that_knows_nothing_leaves_what_was_given():
    """Too few samples."""
    given = Rhythm(0.2, 3.0, 1.5)
    assert Rhythm.planned(None, given) is given
    assert Rhythm.planned(TaskPlan(task="x", samples=1), given).interval == 0.2
    mapping = json.loads('{"first_interval_seconds": 0.3, "growth": 3}')
    assert Rhythm.planned(mapping, given).growth == 3
    assert Rhythm.planned({"first_interval_seconds": 0.3, "first_polls": 0}, given) == Rhythm(
        0.3, 3.0, 2.0, 0
    )
    assert Rhythm.planned(SimpleNamespace(first_interval_seconds=7), given).max_interval == 7


@pytest.mark.parametrize(("interval", "growth"), [(0.4, 1e9), (5.0, 1.8), (5.0, 1e300), (0.4, 1.0)])
def test_no_growth_and_no_number_of_polls_is_too_much(interval, growth):
    """A power that overflows would end the wait."""
    rhythm = Rhythm(interval, 5.0, growth)
    assert rhythm.pause(5) == interval
    assert rhythm.pause(10_000) == (interval if growth == 1 else 5.0)


@pytest.mark.parametrize("growth", [0.5, float("inf"), float("nan")])
def test_a_growth_that_is_no_growth_is_refused(growth):
    """With the rule."""
    with pytest.raises(Misused, match="give a number from 1"):
        Rhythm(0.4, 5.0, growth)

"""What careless callers give: refused before anything is sent, with the value, the rule and the remedy."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from asyncpoll.client import AsyncClient, Client, Misused, PollPolicy, wait_for_terminal
from asyncpoll.client.testing import ScriptedServer, success
from asyncpoll.planfile import PlanFile
from tests.sdk import KINDS, Caller

PLANS = [
    ({"timeout_seconds": "soon"}, "timeout_seconds of the plan is 'soon'; it must be a number"),
    ({"hold_seconds": True}, "hold_seconds of the plan is True; it must be a number, 0 or more"),
    ({"timeout_seconds": float("nan")}, "timeout_seconds of the plan is nan; it must be"),
    ("plan.json", "plan is 'plan.json'; give one task's entry of a polling file"),
    (Path("plan.json"), "give one task's entry of a polling file"),
    ({"format": 1, "plans": []}, "give one task's entry of a polling file"),
    (PlanFile(datetime.now(UTC), ()), r"planfile.read\(PATH\).for_task\(NAME\)"),
]
CALLS = {
    "lifetime of text": (lambda c: c.wait("t", lifetime="9"), "lifetime is '9'; give seconds, from 0"),
    "lifetime of NaN": (lambda c: c.wait("t", lifetime=float("nan")), "every wait ends"),
    "lifetime beyond all": (lambda c: c.wait_all(["t"], lifetime=10**400), "lifetime is 1000"),
    "an id that no URL can have": (lambda c: c.get("\ud800"), "task_id is '.ud800'; give the id"),
    "no function": (lambda c: c.wait("t", on_change=5), "on_change is 5; give a function"),
    "no task id": (lambda c: c.wait(None), "task_id is None; give the id of a task"),
    "bytes for an id": (lambda c: c.get(b"t"), "task_id is b't'; give the id"),
    "an id as long as a book": (lambda c: c.cancel("t" * 61), "task_id is 'ttt"),
    "an id for a list": (lambda c: c.wait_all("t1"), "task_ids is 't1'; give a list of ids"),
    "no list": (lambda c: c.wait_any(7), "task_ids is 7; give a list of ids"),
    "linger of text": (lambda c: c.wait_all(["t"], linger_ms="x"), "linger_ms is 'x'; give a number"),
    "cursor of no end": (lambda c: c.wait("t", cursor="t:" + "9" * 5000), "cursor is 't:999"),
    "on_stale of no sense": (lambda c: c.wait("t", on_stale="Retry"), "on_stale is 'Retry'; give 'raise'"),
    "notify of no sense": (lambda c: c.wait("t", notify=7), "notify is 7; give True or 'inbox'"),
    "hold of text": (lambda c: c.inbox("9"), "hold_seconds is '9'; give seconds"),
    "no entry": (lambda c: c.acknowledge(None), "entry is None; give an entry of the inbox"),
    "no task": (lambda c: c.submit(None), "task is None; give the name of a task"),
    "text for args": (lambda c: c.submit("t", args="ab"), "args is 'ab'; give a list of values"),
    "list for kwargs": (lambda c: c.submit("t", kwargs=[1]), r"kwargs is \[1\]; give a mapping"),
    "a key beyond ASCII": (lambda c: c.submit("t", idempotency_key="ü"), "idempotency_key is 'ü'; give 1 to 255"),
    "a key of two lines": (lambda c: c.submit("t", idempotency_key="a\nb"), "idempotency_key is"),
    "an empty key": (lambda c: c.submit("t", idempotency_key=""), "idempotency_key is ''"),
    "a submission for no time": (lambda c: c.submit("t", lifetime=-1), "lifetime is -1"),
    "what JSON can't say": (lambda c: c.submit("t", args=[object()]), "can't be sent as JSON"),
}  # fmt: skip


@pytest.mark.parametrize(("plan", "said"), PLANS)
def test_a_plan_that_is_none_is_refused_wherever_one_is_taken(plan, said):
    """A mapping may come out of anybody's file."""
    with pytest.raises(Misused, match=said):
        PollPolicy.from_plan(plan)
    if plan != {"hold_seconds": True}:
        with httpx.Client() as http, pytest.raises(Misused, match=said):
            wait_for_terminal(http, "http://127.0.0.1:9/", plan=plan)


@pytest.mark.parametrize(("call", "said"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", KINDS)
async def test_an_argument_that_can_not_be_is_refused_before_anything_is_sent(kind, call, said):
    """By either client, in the same words."""
    attempts = []
    async with Caller(kind, "http://127.0.0.1:9", hooks=[attempts.append]) as client:
        with pytest.raises(Misused, match=said):
            await call(client)
    assert attempts == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": "80"}, "timeout is '80'; give seconds"),
        ({"interval": "x"}, "interval is 'x'; give seconds"),
        ({"growth": None}, "growth is None; give a number from 1"),
        ({"terminal": "DONE"}, "terminal is 'DONE'; give a list of words"),
        ({"terminal": []}, "terminal is empty; give a list of words"),
        ({"terminal": [1]}, "terminal has 1; give a list of words"),
        ({"on_stale": 1}, "on_stale is 1; give 'raise'"),
        ({"hooks": print}, "hooks is <built-in function print>; give a list of functions"),
        ({"hooks": ["x"]}, "hooks has 'x'; give a list of functions"),
        ({"hooks": [AsyncClient.get]}, "hooks has <function .*, which are not awaited"),
        ({"plan": {"first_polls": "x"}}, "first_polls of the plan is 'x'"),
    ],
)
def test_the_same_holds_at_endpoints_that_are_not_ours(options, said):
    """Text where numbers belong is what files and forms give."""
    with httpx.Client() as http, pytest.raises(Misused, match=said):
        wait_for_terminal(http, "http://127.0.0.1:9/", **options)


def test_a_client_that_can_not_be_is_refused():
    """Address, credentials, and an httpx client of the other kind."""
    with pytest.raises(Misused, match="base_url is None; give http://HOST"):
        Client(None)
    with pytest.raises(Misused, match="base_url is 'http://h:99999'; give http://HOST"):
        Client("http://h:99999")
    with pytest.raises(Misused, match=r"policy is \{'hold_seconds': 1\}; give PollPolicy"):
        Client("http://h", policy={"hold_seconds": 1})
    with Client("http://h") as client, pytest.raises(Misused, match="which is not awaited"):
        client.wait("t", on_change=AsyncClient.get)
    with pytest.raises(Misused, match="token is empty or has"):
        Client("http://h", token=5)
    with pytest.raises(Misused, match=r"type AsyncClient; give an httpx\.Client"):
        Client("http://h", http=httpx.AsyncClient())
    with httpx.Client() as http, pytest.raises(Misused, match=r"give an httpx\.AsyncClient"):
        AsyncClient("http://h", http=http)
    with httpx.Client() as http, pytest.raises(Misused, match="url is 5; give it as a text"):
        wait_for_terminal(http, 5)
    with (
        Client("http://h") as ours,
        pytest.raises(Misused, match=r"type Client; give an httpx\.Client"),
    ):
        wait_for_terminal(ours, "/x")


async def test_a_client_that_was_closed_says_so():
    """Its own connections, or those of the caller's httpx client."""
    with ScriptedServer([success()]) as server:
        for kind in KINDS:
            async with Caller(kind, server.url) as client:
                await client.get("t")
            with pytest.raises(Misused, match="The client has been closed; make another"):
                await client.get("t")


def test_a_client_of_another_event_loop_says_so():
    """Its connections are of that one."""
    with ScriptedServer([success()]) as server:
        client = AsyncClient(server.url)

        async def get():
            return await client.get("t")

        assert asyncio.run(get()).succeeded
        with pytest.raises(Misused, match="belongs to another event loop; make one in each"):
            asyncio.run(get())

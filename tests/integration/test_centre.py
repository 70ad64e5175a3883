"""The message centre on the wire: claim checks are left, inboxes wait, entries are acknowledged."""

from __future__ import annotations

import asyncio
import socket
import uuid
from unittest.mock import AsyncMock

import pytest

from asyncpoll.contract import Status
from tasks_app.hold.admission import admission
from tasks_app.models import Delivery, Task
from tasks_app.store import KeptSecret, cancel, delete, fill_inboxes, keep_webhook_secret, step
from tasks_app.upkeep import deliveries, start_upkeep, stop_upkeep
from tests.integration.api_support import API, count_tasks, is_problem, mapped, stored
from tests.support import aeventually

HOOK = "https://hooks.example.com/done"


@pytest.fixture(autouse=True)
def resolver(monkeypatch):
    """Knows every name, and that it is public."""
    answers = {"hooks.example.com": "8.8.8.8"}

    def getaddrinfo(host, port, **_):
        if host not in answers:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


@pytest.fixture
async def with_secret(service):
    """The owner without a name can sign."""
    await service.pool.run(keep_webhook_secret("", KeptSecret(b"salt", b"proof"), replace=False))


async def notify(client, task_id, **body):
    return await client.post(f"{API}/tasks/{task_id}/notify", json=body)


async def inbox(client, hold=0, **options):
    return await client.get(f"{API}/inbox?max_hold_seconds={hold}", **options)


async def test_an_end_is_in_the_inbox_until_it_is_acknowledged(client, service, task_id):
    """With all that an answer to a poll says of it; acknowledging is repeatable."""
    asked = await notify(client, task_id, inbox=True)
    assert asked.status_code == 202
    promised = asked.json()
    assert (promised["state"], promised["inbox"], promised["webhook"]) == ("WAITING", True, None)
    empty = (await inbox(client)).json()
    assert (empty["entries"], empty["has_more"], empty["outcome"]) == ([], False, "STILL_RUNNING")
    await service.pool.run(step(task_id, Status.SUCCESS, result='{"n": 1}'))
    await service.pool.run(fill_inboxes(10))
    listed = (await inbox(client)).json()
    [entry] = listed["entries"]
    assert listed["outcome"] == "CHANGED"
    assert (
        entry.items()
        >= {
            "id": promised["delivery_id"],
            "task_id": str(task_id),
            "task": "sample.add",
            "queue": "outside",
            "status": "SUCCESS",
            "version": 2,
            "result": {"n": 1},
            "result_apart": False,
            "error": None,
        }.items()
    )
    skipping = f"{API}/inbox?after=9&cursor={entry['id']}&offset=1&limit=0"
    assert (await client.get(skipping)).json()["entries"] == [entry]
    acks = [await client.post(f"{API}/inbox/{entry['id']}/ack") for _ in range(2)]
    assert [ack.status_code for ack in acks] == [200, 200]
    assert acks[0].json() == acks[1].json()
    assert (await inbox(client)).json()["entries"] == []
    assert (await notify(client, task_id, inbox=True)).json()["state"] == "DELIVERED"
    await service.pool.run(fill_inboxes(10))
    assert (await inbox(client)).json()["entries"] == []


@pytest.mark.parametrize("first", ["the end", "the request"])
async def test_an_end_is_told_at_once_whichever_came_first(
    client, service, task_id, monkeypatch, first
):
    """By a hint to whoever tells it: here nobody looks for himself for an hour."""
    monkeypatch.setattr(deliveries, "_EVERY_SECONDS", 3_600.0)
    looked = AsyncMock(wraps=deliveries.Deliveries.step)
    monkeypatch.setattr(deliveries.Deliveries, "step", lambda self: looked(self))
    await start_upkeep()
    try:
        await aeventually(lambda: looked.await_count)
        if first == "the end":
            await service.pool.run(cancel(task_id))
            await notify(client, task_id, inbox=True)
        else:
            await notify(client, task_id, inbox=True)
            await service.pool.run(cancel(task_id))
        [entry] = (await inbox(client, hold=25)).json()["entries"]
    finally:
        await stop_upkeep()
    assert entry["task_id"] == str(task_id)


async def test_an_inbox_is_held_until_there_is_something(client, service, task_id, monkeypatch):
    """And answered by the delivery's own notification: here nobody looks for himself."""
    monkeypatch.setattr(service.hub.inboxes, "sweep", lambda: None)
    await notify(client, task_id, inbox=True)
    held = asyncio.create_task(inbox(client, hold=25))
    await aeventually(lambda: service.hub.inboxes.waiting == 1 and admission.held_by["inbox"] == 1)
    await service.pool.run(cancel(task_id))
    await service.pool.run(fill_inboxes(10))
    answered = (await held).json()
    assert [entry["task_id"] for entry in answered["entries"]] == [str(task_id)]
    assert answered["hold_duration_ms"] < 20_000
    assert service.hub.inboxes.waiting == 0


async def test_a_lost_hint_costs_a_moment(client, service, task_id, monkeypatch):
    """While wake-ups go unheard, inboxes that are waited for are looked at every second, together."""
    monkeypatch.setattr(service.hub, "receive", lambda message: None)
    await aeventually(lambda: not service.hub.trust.active)
    await notify(client, task_id, inbox=True)
    held = asyncio.create_task(inbox(client, hold=25))
    await aeventually(lambda: service.hub.inboxes.waiting == 1)
    await service.pool.run(cancel(task_id))
    await service.pool.run(fill_inboxes(10))
    assert (await held).json()["hold_duration_ms"] < 15_000


async def test_a_hold_that_runs_out_says_so(client, service):
    """With the words of every hold."""
    answered = (await inbox(client, hold=0.1)).json()
    assert answered["outcome"] == "STILL_RUNNING"
    assert answered["recommended_client_backoff_ms"] < 200
    assert answered["client_read_timeout_ms"] > 10_000


async def test_a_drain_answers_held_inboxes(client, service, monkeypatch):
    """As it does every hold."""
    held = asyncio.create_task(inbox(client, hold=25))
    await aeventually(lambda: service.hub.inboxes.waiting == 1)
    monkeypatch.setattr(admission, "draining", False)
    admission.begin_drain()
    assert (await held).json()["outcome"] == "DRAINING"


async def test_a_client_that_never_acknowledges_may_not_spin(client, service, task_id):
    """What is listed comes at once, again and again: five times a second."""
    await notify(client, task_id, inbox=True)
    await service.pool.run(cancel(task_id))
    await service.pool.run(fill_inboxes(10))
    answers = [await inbox(client, hold=25) for _ in range(12)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert "acknowledge" in is_problem(refused[0], 429, "too-many-requests")


async def test_one_page_is_bounded_and_says_that_there_is_more(client, service, monkeypatch):
    """Oldest first; what is acknowledged makes room."""
    monkeypatch.setattr("tasks_app.hold.inbox.MOST_ENTRIES", 2)
    ids = [await stored(service) for _ in range(3)]
    for task_id in ids:
        await notify(client, task_id, inbox=True)
        await service.pool.run(cancel(task_id))
        await service.pool.run(fill_inboxes(10))
    first = (await inbox(client)).json()
    assert [entry["task_id"] for entry in first["entries"]] == [str(each) for each in ids[:2]]
    assert first["has_more"]
    for entry in first["entries"]:
        await client.post(f"{API}/inbox/{entry['id']}/ack")
    second = (await inbox(client)).json()
    assert [entry["task_id"] for entry in second["entries"]] == [str(ids[2])]
    assert not second["has_more"]


async def test_inboxes_and_tasks_are_their_owners(client, service, settings):
    """Nobody asks about, sees or acknowledges what is somebody else's; and the scope is `notify`."""
    mapped(settings)
    acme = {"Authorization": "Test acme notify"}
    other = {"Authorization": "Test zenith notify"}
    reader = {"Authorization": "Test acme read submit"}
    task_id = await stored(service, owner="acme")
    url, body = f"{API}/tasks/{task_id}/notify", {"inbox": True}
    is_problem(await client.post(url, json=body, headers=other), 404, "task-not-found")
    is_problem(await client.post(url, json=body, headers=reader), 403, "forbidden")
    assert (await client.post(url, json=body, headers=acme)).status_code == 202
    await service.pool.run(cancel(task_id))
    await service.pool.run(fill_inboxes(10))
    is_problem(await inbox(client, headers=reader), 403, "forbidden")
    assert (await inbox(client, headers=other)).json()["entries"] == []
    [entry] = (await inbox(client, headers=acme)).json()["entries"]
    ack = f"{API}/inbox/{entry['id']}/ack"
    is_problem(await client.post(ack, headers=other), 404, "entry-not-found")
    assert (await client.post(ack, headers=acme)).status_code == 200
    submission = {"task": "sample.add", "args": [1, 2], "notify": {"inbox": True}}
    is_problem(await client.post(f"{API}/tasks", json=submission, headers=reader), 403, "forbidden")


async def test_submitting_and_asking_are_one(client, service, with_secret):
    """The task is there with its claim check; the same key makes neither twice."""
    body = {"task": "sample.add", "args": [1, 2], "notify": {"webhook": HOOK}}
    first = await client.post(f"{API}/tasks", json=body, headers={"Idempotency-Key": "k"})
    assert first.status_code == 202
    again = await client.post(f"{API}/tasks", json=body, headers={"Idempotency-Key": "k"})
    assert again.headers["Idempotent-Replayed"] == "true"
    check = await Delivery.objects.aget()
    assert (str(check.task_id), check.target) == (first.json()["task_id"], HOOK)
    assert (await Task.objects.aget()).awaited
    body["notify"] = {"inbox": True}
    other = await client.post(f"{API}/tasks", json=body, headers={"Idempotency-Key": "k"})
    is_problem(other, 422, "idempotency-key-reused")


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k"}])
async def test_a_submission_that_can_not_be_told_of_stores_nothing(client, service, key):
    """Neither the task nor the key: the same request may come again once there is a secret."""
    body = {"task": "sample.add", "args": [1, 2], "notify": {"webhook": HOOK}}
    refused = await client.post(f"{API}/tasks", json=body, headers=key)
    assert "createwebhooksecret" in is_problem(refused, 422, "notify-refused", "webhook")
    assert await count_tasks() == 0
    await service.pool.run(keep_webhook_secret("", KeptSecret(b"salt", b"proof"), replace=False))
    assert (await client.post(f"{API}/tasks", json=body, headers=key)).status_code == 202


async def test_a_name_that_is_no_longer_there_does_not_undo_what_was_asked(
    client, service, with_secret, resolver, task_id
):
    """A repeated request is answered as the first was; a first one is refused, whatever the name stands for."""
    key = {"Idempotency-Key": "k"}
    body = {"task": "sample.add", "args": [1, 2], "notify": {"webhook": HOOK}}
    made = (await client.post(f"{API}/tasks", json=body, headers=key)).json()["task_id"]
    assert (await notify(client, task_id, webhook=HOOK)).status_code == 202
    del resolver["hooks.example.com"]
    missing = is_problem(
        await notify(client, await stored(service), webhook=HOOK), 422, "notify-refused", "webhook"
    )
    resolver["hooks.example.com"] = "10.0.0.1"
    inside = is_problem(
        await notify(client, await stored(service), webhook=HOOK), 422, "notify-refused", "webhook"
    )
    assert inside == missing
    assert (await notify(client, task_id, webhook=HOOK)).status_code == 202
    again = await client.post(f"{API}/tasks", json=body, headers=key)
    assert again.json()["task_id"] == made


async def test_a_sixth_target_is_refused(client, service, with_secret, task_id):
    """With the limit; the five stay."""
    for number in range(5):
        assert (await notify(client, task_id, webhook=f"{HOOK}/{number}")).status_code == 202
    refused = await notify(client, task_id, inbox=True)
    assert "5" in is_problem(refused, 422, "notify-refused", "inbox")
    assert (await notify(client, task_id, webhook=f"{HOOK}/0")).status_code == 202


@pytest.mark.parametrize(
    ("body", "status", "kind", "parameter"),
    [
        ({}, 422, "invalid-body", "inbox"),
        ({"inbox": False}, 422, "invalid-body", "inbox"),
        ({"inbox": True, "more": 1}, 422, "invalid-body", "inbox"),
        ({"inbox": True, "webhook": HOOK}, 422, "invalid-body", "webhook"),
        ({"webhook": 5}, 422, "invalid-body", "webhook"),
        ({"webhook": "http://example.com/"}, 422, "invalid-body", "webhook"),
        ({"webhook": "https://127.0.0.1/"}, 422, "notify-refused", "webhook"),
        ({"webhook": "https://[::ffff:127.0.0.1]/"}, 422, "notify-refused", "webhook"),
        ({"webhook": "https://user:secret@example.com/"}, 422, "notify-refused", "webhook"),
        ([], 422, "invalid-body", "inbox"),
    ],
)
async def test_what_is_no_target_is_refused(
    client, service, with_secret, task_id, body, status, kind, parameter
):
    """Before anything is stored."""
    refused = await client.post(f"{API}/tasks/{task_id}/notify", json=body)
    is_problem(refused, status, kind, parameter)
    assert await Delivery.objects.acount() == 0


async def test_webhooks_can_be_switched_off(client, service, with_secret, task_id, settings):
    """Then nobody can ask for one."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WEBHOOKS": False}
    refused = await notify(client, task_id, webhook=HOOK)
    assert "inbox" in is_problem(refused, 422, "notify-refused", "webhook")


async def test_what_is_not_there_is_not_found(client, service, task_id):
    """Tasks, entries, and ids that are none."""
    is_problem(await notify(client, uuid.uuid4(), inbox=True), 404, "task-not-found")
    await service.pool.run(delete([task_id]))
    is_problem(await notify(client, task_id, inbox=True), 404, "task-not-found")
    missing = await client.post(f"{API}/inbox/{uuid.uuid4()}/ack")
    is_problem(missing, 404, "entry-not-found")
    malformed = await client.post(f"{API}/inbox/x/ack")
    is_problem(malformed, 400, "invalid-parameter", "entry_id")

"""Who may: what somebody else's task looks like, and what becomes of a request whose credentials end meanwhile."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from asyncpoll.contract import Status
from tasks_app.api.identity import Identity
from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.store import step
from tests.integration.api_support import API, is_problem, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)

WHO: dict[str, Identity] = {}


def authenticate(request):
    """Whoever `WHO` has for the credentials."""
    return WHO.get(request.headers.get("Authorization", ""))


@pytest.fixture(autouse=True)
def people(settings):
    """Alice and Bob, and nobody else."""
    everything = frozenset({"read", "submit", "cancel"})
    WHO.clear()
    WHO.update(alice=Identity("alice", everything), bob=Identity("bob", everything))
    settings.ASYNCPOLL = {
        **settings.ASYNCPOLL,
        "ANONYMOUS": False,
        "AUTHENTICATE": authenticate,
        "MAX_SHORT_POLLS_PER_SECOND": 1_000,
    }


def as_(name):
    return {"Authorization": name}


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("GET", ""),
        ("GET", "/long_poll"),
        ("GET", "/long_poll?client_known_version=1"),
        ("GET", "/long_poll?client_known_version=1&max_hold_seconds=0"),
        ("GET", "/events"),
        ("GET", "/events?after=1"),
        ("GET", "/status"),
        ("GET", "/status?wait=true"),
        ("POST", "/cancel"),
    ],
)
async def test_a_foreign_task_costs_what_a_missing_one_costs(
    client,
    service,
    statements,
    method,
    route,
):
    """The same answer after the same number of statements, also while its owner waits and its row is in memory."""
    foreign, missing = await stored(service, owner="bob"), new_task_id()
    owners = asyncio.ensure_future(
        client.get(f"{API}/tasks/{foreign}/long_poll?client_known_version=1", headers=as_("bob"))
    )
    await aeventually(lambda: admission.held == 1 and service.hub.topics[foreign].snapshot)
    seen = {}
    for task_id in (foreign, missing):
        statements.clear()
        answer = await client.request(method, f"{API}/tasks/{task_id}{route}", headers=as_("alice"))
        is_problem(answer, 404, "task-not-found")
        headers = {name: value for name, value in answer.headers.items() if name != "date"}
        seen[task_id] = (answer.text.replace(str(task_id), ""), headers, tuple(statements))
    assert seen[foreign] == seen[missing]
    assert seen[foreign][2] == ("read",)
    owners.cancel()
    await aeventually(lambda: admission.held == 0)


async def test_among_many_a_foreign_task_costs_what_a_missing_one_costs(
    client, service, statements
):
    """Each has a problem of its own, after one read for all."""
    mine, foreign = await stored(service, owner="alice"), await stored(service, owner="bob")
    owners = asyncio.ensure_future(
        client.get(f"{API}/tasks/{foreign}/long_poll?client_known_version=1", headers=as_("bob"))
    )
    await aeventually(lambda: admission.held == 1 and service.hub.topics[foreign].snapshot)
    seen = []
    for other in (foreign, new_task_id()):
        statements.clear()
        url = f"{API}/tasks/long_poll?task={mine}&task={other}:1&max_hold_seconds=0"
        answer = await client.get(url, headers=as_("alice"))
        [problem] = answer.json()["problems"]
        seen.append((str(problem).replace(str(other), ""), tuple(statements)))
    assert seen[0] == seen[1]
    owners.cancel()
    await aeventually(lambda: admission.held == 0)


async def test_a_ticket_for_another_task_asks_the_database_nothing(client, service):
    """There or not: whoever holds it learns nothing."""
    from tasks_app.api.identity import poll_ticket

    ticket = poll_ticket(await stored(service, owner="alice"))
    there, missing = await stored(service, owner="bob"), new_task_id()
    answers = [await client.get(f"{API}/tasks/{each}?ticket={ticket}") for each in (there, missing)]
    texts = {
        is_problem(answer, 404, "task-not-found").replace(str(each), "")
        for answer, each in zip(answers, (there, missing), strict=True)
    }
    assert len(texts) == 1
    assert there not in service.hub.topics


async def test_a_held_request_whose_credentials_end_gets_no_data(client, service, monkeypatch):
    """They are looked at again when it wakes."""
    monkeypatch.setattr("tasks_app.api.identity._FRESH_SECONDS", 0.0)
    task_id = await stored(service, owner="alice")
    held = asyncio.ensure_future(
        client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version=1", headers=as_("alice"))
    )
    await aeventually(lambda: admission.held == 1)
    del WHO["alice"]
    await service.pool.run(step(task_id, Status.RUNNING, message="for alice only"))
    answer = await held
    is_problem(answer, 401, "unauthenticated")
    assert "for alice" not in answer.text


async def test_a_held_request_whose_scope_is_taken_away_gets_no_data(client, service, monkeypatch):
    """403, which names the scope."""
    monkeypatch.setattr("tasks_app.api.identity._FRESH_SECONDS", 0.0)
    task_id = await stored(service, owner="alice")
    held = asyncio.ensure_future(
        client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version=1", headers=as_("alice"))
    )
    await aeventually(lambda: admission.held == 1)
    WHO["alice"] = Identity("alice", frozenset({"submit"}))
    await service.pool.run(step(task_id, Status.RUNNING))
    assert "'read'" in is_problem(await held, 403, "forbidden")


async def test_a_task_that_changes_hands_while_it_is_waited_for_is_not_shown(client, service):
    """Its waiter gets the 404 of a stranger."""
    from tasks_app.models import Task

    task_id = await stored(service, owner="alice")
    held = asyncio.ensure_future(
        client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version=1", headers=as_("alice"))
    )
    await aeventually(lambda: admission.held == 1)
    await Task.objects.filter(id=task_id).aupdate(owner="bob")
    await service.pool.run(step(task_id, Status.RUNNING, message="for bob only"))
    is_problem(await held, 404, "task-not-found")


async def test_a_mapping_that_gives_something_else_is_a_fault_of_the_project(client, service):
    """500, and not somebody's data."""
    WHO["alice"] = "alice"
    task_id = await stored(service, owner="alice")
    answer = await client.get(f"{API}/tasks/{task_id}", headers=as_("alice"))
    is_problem(answer, 500, "internal-error")


async def test_a_scope_is_asked_for_before_a_body_is_read(client, service):
    """A stranger does not have megabytes parsed."""
    answer = await client.post(f"{API}/tasks", content=b"{" * 1000)
    is_problem(answer, 401, "unauthenticated")
    answer = await client.post(
        f"{API}/queues/mail/claim", json={"claim_id": "x"}, headers=as_("bob")
    )
    assert "'claim:mail'" in is_problem(answer, 403, "forbidden")


async def test_a_ticket_waits_for_its_task_in_every_way_and_does_nothing_else(client, service):
    """All that reads the one task, and not lists, submissions, claims or a cancel."""
    from tasks_app.api.identity import poll_ticket

    task_id = await stored(service, owner="alice")
    ticket = poll_ticket(task_id)
    for route in (
        f"tasks/{task_id}",
        f"tasks/{task_id}/long_poll",
        f"tasks/{task_id}/status",
        f"tasks/{task_id}/events",
        f"tasks/long_poll?task={task_id}",
    ):
        mark = "&" if "?" in route else "?"
        answer = await client.get(f"{API}/{route}{mark}ticket={ticket}")
        assert answer.status_code == 200, answer.text
    is_problem(await client.get(f"{API}/tasks?ticket={ticket}"), 403, "forbidden", "ticket")
    for route, body in (
        (f"tasks/{task_id}/cancel", {}),
        ("tasks", {"task": "sample.add", "kwargs": {"a": 1}}),
        ("queues/outside/claim", {"claim_id": "x"}),
    ):
        answer = await client.post(f"{API}/{route}?ticket={ticket}", json=body)
        is_problem(answer, 403, "forbidden")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda ticket: "",
        lambda ticket: ticket[:-1],
        lambda ticket: ticket + "x",
        lambda ticket: ticket.upper(),
        lambda ticket: f" {ticket}",
        lambda ticket: ticket + "%00",
        lambda ticket: ticket + "%0A",
        lambda ticket: ticket.replace(":", "%EF%BC%9A"),
        lambda ticket: ":".join([ticket.split(":")[0], "zzzzzz", ticket.split(":")[2]]),
        lambda ticket: "x" * 5_000,
        lambda ticket: "::",
        lambda ticket: f"{ticket}&ticket={ticket}",
        lambda ticket: f"{ticket}&%74icket=x",
    ],
)
async def test_a_ticket_that_is_not_exactly_one_is_refused(client, service, spoil):
    """Cut, extended, changed, dated later, given twice."""
    from tasks_app.api.identity import poll_ticket

    task_id = await stored(service, owner="alice")
    answer = await client.get(f"{API}/tasks/{task_id}?ticket={spoil(poll_ticket(task_id))}")
    is_problem(answer, 401, "unauthenticated", "ticket")


async def test_what_else_the_project_signs_is_no_ticket(client, service):
    """The same key, another purpose: lease tokens, sessions, whatever a view signs."""
    from django.core.signing import Signer, TimestampSigner, dumps

    task_id = await stored(service, owner="alice")
    forged = [
        Signer().sign(task_id.hex),
        TimestampSigner().sign(task_id.hex),
        TimestampSigner(salt="asyncpoll.lease").sign(task_id.hex),
        TimestampSigner(salt="asyncpoll.poll-ticket", algorithm="md5").sign(task_id.hex),
        TimestampSigner(salt="asyncpoll.poll-ticket", key="another").sign(task_id.hex),
        dumps(task_id.hex),
    ]
    for ticket in forged:
        answer = await client.get(f"{API}/tasks/{task_id}?ticket={ticket}")
        is_problem(answer, 401, "unauthenticated", "ticket")


async def test_who_is_unknown_to_the_project_s_own_authentication_is_not_told_to_fix_a_token(
    client,
):
    """Unless what came begins as one of ours does."""
    for sent, said in (
        ("Bearer wrong", "own authentication"),
        ("Bearer ap_wrong", "ap_ and has 59"),
    ):
        answer = await client.get(f"{API}/tasks/{uuid4()}", headers=as_(sent))
        assert said in is_problem(answer, 401, "unauthenticated")

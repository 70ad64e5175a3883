"""Tokens from end to end: made by the command, checked by every process, revoked everywhere."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command

from asyncpoll.contract import Status
from tasks_app.api.bearer import guesses
from tasks_app.hold.admission import admission
from tasks_app.models import Token
from tasks_app.store import delete, find_tokens, make_token, revoke_token, step
from tasks_app.tokens import issue
from tests.integration.api_support import API, is_problem, stored
from tests.integration.clients import connected
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)

SCOPES = ("read", "submit", "cancel")


@pytest.fixture(autouse=True)
def nobody_without_a_token(settings):
    """Nothing else lets anybody in."""
    guesses._misses._left.clear()
    settings.ASYNCPOLL = {
        **settings.ASYNCPOLL,
        "ANONYMOUS": False,
        "MAX_SHORT_POLLS_PER_SECOND": 1_000,
    }


async def token(service, owner="alice", scopes=SCOPES, lifetime=3_600.0):
    issued = issue(owner, scopes, lifetime, "")
    await service.pool.run(make_token(issued.new))
    return issued


def bearing(issued):
    return {"Authorization": f"Bearer {issued.text}"}


def asked_for(service, monkeypatch):
    """The ids that are looked up in the database from now on."""
    ids = []

    def finding(wanted):
        ids.extend(wanted)
        return find_tokens(wanted)

    monkeypatch.setattr("tasks_app.wakeup.tokens.find_tokens", finding)
    return ids


async def command(name, *arguments, **options):
    return await sync_to_async(call_command)(name, *arguments, **options)


async def test_a_token_from_the_command_lets_its_owner_in(client, service, capsys):
    """Printed once, alone on a line; what is kept is not it."""
    await command("createtoken", owner="alice", label="phone", expires=60.0)
    said = capsys.readouterr()
    text = said.out.strip()
    assert text.startswith("ap_") and text not in said.err
    headers = {"Authorization": f"Bearer {text}"}
    body = {"task": "sample.add", "kwargs": {"a": 1}}
    made = await client.post(f"{API}/tasks", json=body, headers=headers)
    assert made.status_code == 202
    task = await client.get(made.headers["location"], headers=headers)
    assert task.json()["task_id"] == made.json()["task_id"]
    row = await Token.objects.aget()
    assert text.split("_")[2] not in repr(row.__dict__)
    assert row.expires_at - row.created_at == timedelta(seconds=60)
    assert (row.owner, row.label, row.scopes) == ("alice", "phone", ["cancel", "read", "submit"])
    await aeventually(lambda: Token.objects.filter(last_used_at__isnull=False).aexists())


async def test_tasks_belong_to_the_owner_of_the_token(client, service):
    """Others do not see them."""
    alice, bob = await token(service), await token(service, "bob")
    body = {"task": "sample.add", "kwargs": {"a": 1}}
    made = await client.post(f"{API}/tasks", json=body, headers=bearing(alice))
    where = made.headers["location"]
    assert (await client.get(where, headers=bearing(alice))).status_code == 200
    is_problem(await client.get(where, headers=bearing(bob)), 404, "task-not-found")
    is_problem(await client.post(f"{where}/cancel", headers=bearing(bob)), 404, "task-not-found")


async def test_a_renewed_poll_costs_no_statement(client, service, statements):
    """Neither for the task nor for the token."""
    alice = await token(service)
    task_id = await stored(service, owner="alice")
    url = f"{API}/tasks/{task_id}/long_poll?client_known_version=1&max_hold_seconds=0.01"
    await client.get(url, headers=bearing(alice))
    await aeventually(lambda: "touch_tokens" in statements)
    statements.clear()
    for _ in range(5):
        answer = await client.get(url, headers=bearing(alice))
        assert answer.json()["outcome"] == "STILL_RUNNING"
    assert statements == []


@pytest.mark.parametrize(
    ("scopes", "method", "route", "missing"),
    [
        (("submit", "cancel"), "GET", "/tasks/{id}", "read"),
        (("submit", "cancel"), "GET", "/tasks/{id}/long_poll", "read"),
        (("submit", "cancel"), "GET", "/tasks/{id}/status", "read"),
        (("read", "cancel"), "POST", "/tasks", "submit"),
        (("read", "submit"), "POST", "/tasks/{id}/cancel", "cancel"),
        (("read", "submit", "claim:other"), "POST", "/queues/mail/claim", "claim:mail"),
    ],
)
async def test_a_missing_scope_is_named(client, service, scopes, method, route, missing):
    """403 with what is needed, what there is, and what to do."""
    alice = await token(service, scopes=scopes)
    task_id = await stored(service, owner="alice")
    answer = await client.request(
        method, f"{API}{route.format(id=task_id)}", headers=bearing(alice), json={}
    )
    detail = is_problem(answer, 403, "forbidden")
    assert f"scope '{missing}'" in detail
    has = ", ".join(sorted(scopes))
    assert f"credentials have {has}. Use credentials that have it" in detail
    assert detail.endswith(f"manage.py createtoken --scopes {','.join([*sorted(scopes), missing])}")


@pytest.mark.parametrize("scope", ["claim:outside", "claim:*"])
async def test_a_claim_needs_its_queue(client, service, scope):
    """Named, or all of them."""
    executor = await token(service, "ex", (scope,))
    answer = await client.post(
        f"{API}/queues/outside/claim",
        json={"claim_id": "one", "max_hold_seconds": 0},
        headers=bearing(executor),
    )
    assert answer.status_code == 200, answer.text


async def test_what_is_no_token_is_401_and_costs_no_statement(client, service, statements):
    """Case, white space, other schemes, pieces, floods, controls, letters of other scripts, two headers."""
    text = (await token(service)).text
    task_id = await stored(service, owner="alice")
    statements.clear()
    for header in (
        text, f"Basic {text}", f"Token {text}", f"Bearer\t{text}", f"Bearer {text[:-1]}", f"Bearer {text}x",
        f"Bearer {text.upper()}", f"Bearer {text.lower()} ", f"Bearer {text},", f"Bearer {text}, Bearer {text}",
        f"Bearer {text} {text}", "Bearer", "Bearer ", "Bearer ap_", "Bearer ap__", "Bearer " + "x" * 100_000,
        f"Bearer {text}\x00", f"Bearer \x00{text}", f'Bearer "{text}"', f"Bearer token={text}",
    ):  # fmt: skip
        raw = [(b"Authorization", header.encode("latin1"))]
        answer = await client.get(f"{API}/tasks/{task_id}", headers=raw)
        is_problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer"), header
        assert text not in answer.text
    raw = [(b"Authorization", f"Bearer {text}".encode())] * 2
    is_problem(await client.get(f"{API}/tasks/{task_id}", headers=raw), 401, "unauthenticated")
    raw = [(b"Authorization", f"Bearer {text[:-1]}é".encode())]
    is_problem(await client.get(f"{API}/tasks/{task_id}", headers=raw), 401, "unauthenticated")
    answer = await client.get(f"{API}/tasks/{task_id}", headers={"Authorization": "Bearer sesame"})
    assert "Bearer is no token: one begins with ap_" in is_problem(answer, 401, "unauthenticated")
    assert statements == []


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
async def test_the_scheme_is_not_case_sensitive(client, service, scheme):
    """As RFC 9110 has it."""
    alice = await token(service)
    task_id = await stored(service, owner="alice")
    headers = {"Authorization": f"{scheme} {alice.text}"}
    assert (await client.get(f"{API}/tasks/{task_id}", headers=headers)).status_code == 200


@pytest.mark.parametrize("why", ["secret", "expired", "revoked", "deleted"])
async def test_a_token_that_is_not_good_is_401_whatever_is_wrong(client, service, why):
    """One text for all, which does not say which ids there are."""
    alice = await token(service)
    if why == "secret":
        other = await token(service)
        alice = type(alice)(f"{alice.text[:16]}{other.text[16:]}", alice.new)
    elif why == "expired":
        await Token.objects.aupdate(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    elif why == "revoked":
        await service.pool.run(revoke_token(alice.new.id))
    else:
        await Token.objects.all().adelete()
    task_id = await stored(service, owner="alice")
    answer = await client.get(f"{API}/tasks/{task_id}", headers=bearing(alice))
    detail = is_problem(answer, 401, "unauthenticated")
    assert detail == "The token is unknown, has expired, or was revoked; ask its owner for another."


async def poll_of_alice(client, service):
    """Her token, her task, and her poll for it, which is held."""
    alice = await token(service)
    task_id = await stored(service, owner="alice")
    url = f"{API}/tasks/{task_id}/long_poll?client_known_version=1"
    held = asyncio.ensure_future(client.get(url, headers=bearing(alice)))
    await aeventually(lambda: admission.held == 1)
    return alice, task_id, url, held


async def test_a_revocation_reaches_this_process_and_ends_what_is_held(
    client, service, capsys, emitted
):
    """By NOTIFY: nothing is asked until then, and nothing given away after."""
    alice, task_id, url, held = await poll_of_alice(client, service)
    known = service.tokens.recall(alice.new.id)
    await command("revoketoken", alice.text)
    assert alice.new.id in capsys.readouterr().out
    await aeventually(lambda: not service.tokens.holds(known))
    # It was heard, and not noticed by a sweep or by the end of trust.
    assert service.hub.trust.active and not emitted.of("hub.trust_ended")
    await service.pool.run(step(task_id, Status.RUNNING, message="for alice only"))
    answer = await held
    is_problem(answer, 401, "unauthenticated")
    assert "for alice" not in answer.text
    is_problem(await client.get(url, headers=bearing(alice)), 401, "unauthenticated")
    await command("revoketoken", alice.new.id)
    assert "before" in capsys.readouterr().out


async def test_whose_token_has_ended_is_not_told_what_became_of_a_task(client, service):
    """A deletion is an answer like any other."""
    alice, task_id, _, held = await poll_of_alice(client, service)
    known = service.tokens.recall(alice.new.id)
    await command("revoketoken", alice.text)
    await aeventually(lambda: not service.tokens.holds(known))
    await service.pool.run(delete([task_id]))
    is_problem(await held, 401, "unauthenticated")


async def test_guessing_is_slowed_down_and_those_who_know_are_not(client, service, statements):
    """So many misses at once, then 429 without a statement, for that address."""
    alice = await token(service)
    task_id = await stored(service, owner="alice")
    url = f"{API}/tasks/{task_id}"
    assert (await client.get(url, headers=bearing(alice))).status_code == 200
    await aeventually(lambda: "touch_tokens" in statements)
    statements.clear()
    answers = [
        await client.get(url, headers=bearing(issue("x", ["read"], None, ""))) for _ in range(60)
    ]
    codes = [answer.status_code for answer in answers]
    assert codes[:10] == [401] * 10 and 429 in codes
    assert len(statements) == codes.count(401) < 60
    is_problem(answers[codes.index(429)], 429, "too-many-requests")
    service.tokens.forget(alice.new.id)
    assert (await client.get(url, headers=bearing(alice))).status_code == 200


async def test_guesses_that_are_sent_together_are_counted_before_they_are_looked_up(
    client, service, monkeypatch
):
    """As many ids as one address may miss, in whatever statements; the rest is refused without being looked up."""
    looked_up = asked_for(service, monkeypatch)
    tokens = [issue("x", ["read"], None, "") for _ in range(200)]
    answers = await asyncio.gather(
        *(client.get(f"{API}/tasks", headers=bearing(issued)) for issued in tokens)
    )
    codes = Counter(answer.status_code for answer in answers)
    assert len(looked_up) == codes[401] < 40 and codes[429] == 200 - codes[401]


async def test_many_that_come_back_at_once_from_one_address_are_all_let_in(client, service):
    """Behind a gateway, after a restart, when none is remembered."""
    tokens = [await token(service) for _ in range(60)]
    answers = await asyncio.gather(
        *(client.get(f"{API}/tasks", headers=bearing(issued)) for issued in [*tokens, *tokens])
    )
    assert {answer.status_code for answer in answers} == {200}


async def test_addresses_of_one_customer_are_one(service, monkeypatch):
    """With IPv6, whoever has one address has 2^64."""
    looked_up = asked_for(service, monkeypatch)
    codes = Counter()
    for number in range(60):
        async with connected(client_address=f"2001:db8:0:7::{number:x}") as client:
            headers = bearing(issue("x", ["read"], None, ""))
            codes[(await client.get(f"{API}/tasks", headers=headers)).status_code] += 1
    assert len(looked_up) == codes[401] < 40 and codes[429] > 20
    async with connected(client_address="2001:db8:0:8::1") as client:
        headers = bearing(issue("x", ["read"], None, ""))
        assert (await client.get(f"{API}/tasks", headers=headers)).status_code == 401


async def test_a_database_that_is_away_is_503_and_not_401(client, service, statements, monkeypatch):
    """A client must not throw its token away for that."""
    from tasks_app.errors import StoreUnavailable

    alice = await token(service)

    async def away(call):
        raise StoreUnavailable("away")

    monkeypatch.setattr(service.pool, "run", away)
    answer = await client.get(f"{API}/tasks/{alice.new.id}", headers=bearing(alice))
    is_problem(answer, 503, "unavailable")


async def test_an_owner_of_any_script_is_an_owner(client, service):
    """Owners are text."""
    owner = "ünï\u202e𝕔 👩‍🚀 ' OR 1=1"
    theirs = await token(service, owner)
    task_id = await stored(service, owner=owner)
    answer = await client.get(f"{API}/tasks/{task_id}", headers=bearing(theirs))
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scopes": "read,nonsense"}, "'nonsense' is no scope"),
        ({"scopes": " , "}, "without scopes"),
    ],
)
async def test_a_token_that_makes_no_sense_is_not_made(db, options, says):
    """One sentence, and no row."""
    with pytest.raises(CommandError, match=says):
        await command("createtoken", owner="alice", **options)
    assert not await Token.objects.aexists()


async def test_a_token_that_there_is_not_can_not_be_revoked(db):
    """Exit code 1."""
    for text in ("", "ap_", "bbbbbbbbbbbb", "ap_bbbbbbbbbbbb_x"):
        with pytest.raises(CommandError, match="no such token"):
            await command("revoketoken", text)


@pytest.mark.parametrize("span", ["0", "0d", "-1", "9999999d", "soon", "1w"])
async def test_a_life_that_is_none_is_refused(db, span):
    """With how to write one."""
    with pytest.raises(
        CommandError, match=r"span of time|shorter span|at most a century|expected one argument"
    ):
        await command("createtoken", "--owner", "a", "--expires", span)

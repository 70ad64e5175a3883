"""Claim checks in the database: each end is told once to each target, whichever statement ends the task."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection, transaction

from asyncpoll.contract import DeliveryState, Status
from tasks_app.models import Delivery, DeliveryAttempt, InboxEntry, Task
from tasks_app.store import (
    Attempt,
    Change,
    KeptSecret,
    Milestone,
    Route,
    acknowledge,
    cancel,
    commit,
    delete,
    dsn,
    due_routes,
    fill_inboxes,
    filled_inboxes,
    keep_webhook_secret,
    lock_task,
    promise,
    prune,
    prune_deliveries,
    prune_inboxes,
    read_inbox,
    record_delivery,
    rescue,
    revisit_deliveries,
    step,
    take_deliveries,
)
from tasks_app.store.driver import run
from tasks_app.webhooks.targets import INBOX, webhook
from tests.integration.test_store import WORKER, claimed, enqueued

pytestmark = pytest.mark.django_db

HOOK = webhook("https://hooks.example.com/done")


def asked(task_id, target=INBOX):
    """The claim check that somebody leaves for a task."""
    with transaction.atomic():
        assert run(lock_task(task_id)) is not None
        return run(promise(task_id, target))


def ended(status=Status.SUCCESS, count=1, **changes):
    """Ids of tasks that a worker has ended."""
    ids = enqueued(count, **changes)
    end(ids, status)
    return ids


def end(ids, status=Status.SUCCESS):
    """Have a worker end these tasks, the only ones that wait."""
    claims = claimed()
    assert {claim.id for claim in claims} == set(ids)
    kind = {Status.SUCCESS: "succeeded", Status.FAILED: "failed"}[status]
    result = "5" if status is Status.SUCCESS else None
    changes = [
        Change(claim.id, claim.attempt, status, (Milestone(kind),), result=result)
        for claim in claims
    ]
    assert len(run(commit(WORKER, changes))) == len(ids)


def state(promised):
    return Delivery.objects.get(pk=promised.id).state


def test_the_end_of_a_task_makes_its_claim_check_due():
    """Until then it waits, afterwards its owner's inbox has an entry, and no second one."""
    [task_id] = enqueued(owner="acme")
    promised = asked(task_id)
    assert promised.state is DeliveryState.WAITING
    assert run(due_routes(Route())) == {}
    end([task_id])
    assert list(run(due_routes(Route()))) == [Route()]
    assert run(fill_inboxes(10)) == (1, 1)
    assert run(fill_inboxes(10)) == (0, 0)
    [entry] = run(read_inbox("acme", 10))
    assert (entry.id, entry.ended.task_id, entry.ended.result) == (promised.id, task_id, "5")
    assert state(promised) == DeliveryState.DELIVERED


def test_a_task_that_is_over_is_delivered_at_once():
    """Whoever asks after the end is owed it from that moment."""
    [task_id] = ended()
    assert asked(task_id).state is DeliveryState.DUE
    assert run(fill_inboxes(10)) == (1, 1)
    assert asked(task_id).state is DeliveryState.DELIVERED
    assert run(fill_inboxes(10)) == (0, 0)


@pytest.mark.parametrize("how", ["cancel", "step", "rescue", "quarantine", "give_back", "orm"])
def test_every_way_to_end_is_noticed(how):
    """Not only a worker's commit ends tasks."""
    [task_id] = enqueued()
    promised = asked(task_id)
    if how == "cancel":
        run(cancel(task_id))
    elif how == "step":
        run(step(task_id, Status.FAILED, error_type="E", error_message="m"))
    elif how == "rescue":
        claimed(lease=1.0)
        Task.objects.filter(pk=task_id).update(
            lease_expires_at="2020-01-01T00:00:00Z", failures=1, attempt=2, max_attempts=1
        )
        run(rescue(10, 1.0, 1.0))
    elif how == "quarantine":
        from tasks_app.store.quarantine import quarantine

        Task.objects.filter(pk=task_id).update(attempt=2**31 - 1)
        run(quarantine())
    elif how == "give_back":
        from tasks_app.store import give_back

        claimed()
        run(cancel(task_id))
        run(give_back(WORKER, []))
    else:
        Task.objects.filter(pk=task_id).update(
            status="CANCELLED", ready=False, finished_at="2026-01-01T00:00:00Z"
        )
    assert Task.objects.get(pk=task_id).finished_at is not None
    assert state(promised) == DeliveryState.DUE


def test_the_same_target_twice_is_one_claim_check():
    """Asking is repeatable, and says which one it is."""
    [task_id] = enqueued()
    assert asked(task_id).id == asked(task_id).id
    assert (
        asked(task_id, HOOK).id == asked(task_id, webhook("https://HOOKS.example.com:443/done")).id
    )
    assert Delivery.objects.count() == 2


def test_a_task_has_five_targets_at_most():
    """A sixth is refused; one of the five can still be asked for again."""
    [task_id] = enqueued()
    hooks = [webhook(f"https://hooks.example.com/{number}") for number in range(6)]
    assert all(asked(task_id, hook) for hook in hooks[:5])
    assert asked(task_id, hooks[5]) is None
    assert asked(task_id, hooks[0]) is not None


def test_tasks_that_nobody_asked_about_leave_no_trace():
    """The trigger does not even run for them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION asyncpoll_task_ended() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'called'; END $$"
        )
    ended(count=3)
    assert Delivery.objects.count() == 0


def test_a_task_that_has_changed_hands_is_told_to_nobody():
    """The claim check was the former owner's, who may not see the task any more."""
    [task_id] = ended(owner="acme")
    inbox, hook = asked(task_id), asked(task_id, HOOK)
    Task.objects.filter(pk=task_id).update(owner="zenith")
    assert run(fill_inboxes(10)) == (1, 0)
    assert state(inbox) == DeliveryState.FAILED
    [due] = run(take_deliveries({Route("acme", HOOK.host): 1}, 30.0))
    assert (due.id, due.ended) == (hook.id, None)


def test_a_deleted_task_takes_its_claim_checks_along():
    """And what they have delivered."""
    [over] = ended()
    asked(over)
    run(fill_inboxes(10))
    [task_id] = enqueued()
    asked(task_id)
    run(delete([task_id, over]))
    assert (Delivery.objects.count(), InboxEntry.objects.count()) == (0, 0)


def test_a_pruned_tasks_entry_can_be_read():
    """An entry says what there is to say without its task."""
    [task_id] = ended(owner="acme")
    asked(task_id)
    run(fill_inboxes(10))
    assert run(prune(0.0, 10)).deleted == 1
    [entry] = run(read_inbox("acme", 10))
    assert (entry.ended.status, entry.ended.result) == (Status.SUCCESS, None)


def test_ends_that_went_unnoticed_are_found():
    """A restored database, a trigger that was off, a task deleted past the store."""
    ids = enqueued(3)
    checks = [asked(task_id) for task_id in ids]
    Task.objects.filter(pk=ids[0]).delete()
    Task.objects.filter(pk=ids[1]).update(awaited=False)
    end(ids[1:])
    Delivery.objects.filter(pk=checks[2].id).update(state="WAITING", due_at=None)
    assert run(revisit_deliveries(2, uuid.UUID(int=0))) == (2, checks[1].id)
    assert run(revisit_deliveries(2, checks[1].id)) == (1, checks[2].id)
    assert run(revisit_deliveries(2, checks[2].id)) == (0, None)
    assert run(fill_inboxes(10)) == (3, 2)


def test_a_webhook_is_taken_by_one_for_a_while():
    """So many of each host; and who took it knows what to sign with and what to tell."""
    run(keep_webhook_secret("acme", KeptSecret(b"s1", b"p1"), replace=False))
    run(keep_webhook_secret("acme", KeptSecret(b"s2", b"p2"), replace=True))
    other = webhook("https://other.example.com/")
    for task_id in ended(count=3, owner="acme"):
        asked(task_id, HOOK)
        asked(task_id, other)
    room = {
        Route("acme", HOOK.host): 2,
        Route("acme", other.host): 5,
        Route("acme", "nobody.example.com"): 1,
        Route("zenith", HOOK.host): 1,
    }
    taken = run(take_deliveries(room, 30.0))
    assert sorted(due.host for due in taken) == [HOOK.host] * 2 + [other.host] * 3
    assert {due.secrets for due in taken} == {(KeptSecret(b"s2", b"p2"), KeptSecret(b"s1", b"p1"))}
    assert {due.ended.result for due in taken} == {"5"}
    assert len(run(take_deliveries(room, 30.0))) == 1
    assert run(due_routes(Route()))[Route("acme", other.host)] > 20


def test_an_attempt_is_recorded_with_what_follows():
    """A failure is due again, until nobody wants to try again; a success is the end."""
    [task_id] = ended()
    promised = asked(task_id, HOOK)
    [first] = run(take_deliveries({Route("", HOOK.host): 1}, 0.0))
    assert run(record_delivery(first, Attempt(503, "HTTP 503", 12.0), 0.0))
    [second] = run(take_deliveries({Route("", HOOK.host): 1}, 0.0))
    assert second.attempt == 2
    # The first, which was thought dead, has nothing to say any more; unless it was taken.
    assert not run(record_delivery(first, Attempt(None, "ConnectTimeout", 1.0), None))
    assert run(record_delivery(second, Attempt(204, "", 3.0), None))
    assert state(promised) == DeliveryState.DELIVERED
    attempts = DeliveryAttempt.objects.order_by("number").values_list("number", "status", "error")
    assert list(attempts) == [(1, 503, "HTTP 503"), (2, 204, "")]
    assert not run(record_delivery(second, Attempt(None, "ConnectTimeout", 1.0), 1.0))


def test_an_acknowledged_entry_is_listed_no_more():
    """Acknowledging is repeatable, and not for others."""
    [task_id] = ended(owner="acme")
    promised = asked(task_id)
    run(fill_inboxes(10))
    assert run(filled_inboxes(["acme", "zenith"])) == {"acme"}
    assert run(acknowledge(promised.id, "zenith")) is None
    first = run(acknowledge(promised.id, "acme"))
    assert first is not None
    assert run(acknowledge(promised.id, "acme")) == first
    assert run(read_inbox("acme", 10)) == []
    assert run(filled_inboxes(["acme"])) == set()


def test_what_is_over_is_pruned_in_batches():
    """Acknowledged entries, entries that nobody ever acknowledges, and deliveries with their attempts."""
    for task_id in ended(count=3):
        asked(task_id)
        asked(task_id, HOOK)
    run(fill_inboxes(10))
    for due in run(take_deliveries({Route("", HOOK.host): 5}, 30.0)):
        run(record_delivery(due, Attempt(200, "", 1.0), None))
    entries = run(read_inbox("", 10))
    run(acknowledge(entries[0].id, ""))
    assert run(prune_inboxes(None, None, 10)) == 0
    assert run(prune_inboxes(3600.0, 3600.0, 10)) == 0
    assert run(prune_inboxes(0.0, None, 10)) == 1
    assert run(prune_inboxes(0.0, 0.0, 1)) == 1
    assert run(prune_inboxes(0.0, 0.0, 10)) == 1
    assert run(prune_deliveries(3600.0, 10)) == 0
    assert run(prune_deliveries(0.0, 4)) == 4
    assert run(prune_deliveries(0.0, 4)) == 2
    assert (InboxEntry.objects.count(), DeliveryAttempt.objects.count()) == (0, 0)


class Outside:
    """A connection of somebody else's, in a transaction of its own."""

    def __init__(self) -> None:
        self._connection = psycopg.connect(**dsn.parameters("test"))

    def run(self, call):
        """Execute without committing."""
        cursor = self._connection.execute(call.sql, dict(call.params))
        return call.shape(cursor.fetchall() if cursor.description else [])

    def commit(self) -> None:
        """And leave."""
        self._connection.commit()
        self._connection.close()


@pytest.mark.django_db(transaction=True)
def test_an_end_that_is_being_committed_when_somebody_asks_is_delivered_once():
    """Who asks waits for it, and then knows that the task is over."""
    [task_id] = enqueued()
    ender = Outside()
    ender.run(cancel(task_id))
    with ThreadPoolExecutor(1) as elsewhere:
        asking = elsewhere.submit(_asked_elsewhere, task_id)
        _until_somebody_waits()
        ender.commit()
        assert asking.result(20).state is DeliveryState.DUE
    assert run(fill_inboxes(10)) == (1, 1)
    assert run(fill_inboxes(10)) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_an_end_that_waits_for_somebody_who_asks_is_delivered_once():
    """The claim check is there when the end goes on."""
    [task_id] = enqueued()
    asker = Outside()
    asker.run(lock_task(task_id))
    asker.run(promise(task_id, INBOX))
    with ThreadPoolExecutor(1) as elsewhere:
        ending = elsewhere.submit(_cancelled_elsewhere, task_id)
        _until_somebody_waits()
        asker.commit()
        assert ending.result(20).status is Status.CANCELLED
    assert run(fill_inboxes(10)) == (1, 1)
    assert run(fill_inboxes(10)) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_a_race_of_ends_and_claim_checks_makes_one_delivery_each():
    """Whoever comes first, in whatever order."""
    ids = enqueued(60)
    with ThreadPoolExecutor(4) as elsewhere:
        work = [
            elsewhere.submit(what, task_id)
            for task_id in ids
            for what in (_cancelled_elsewhere, _asked_elsewhere, _asked_elsewhere)
        ]
        filling = [elsewhere.submit(_filled_elsewhere) for _ in range(10)]
        for each in (*work, *filling):
            each.result(60)
    _filled_elsewhere()
    assert sorted(InboxEntry.objects.values_list("task_id", flat=True)) == sorted(ids)
    assert Delivery.objects.filter(state="DELIVERED").count() == len(ids)


@pytest.mark.django_db(transaction=True)
def test_five_is_the_most_however_many_ask_at_once():
    """The row's lock lets one after the other count."""
    [task_id] = enqueued()
    hooks = [webhook(f"https://hooks.example.com/{number}") for number in range(12)]
    with ThreadPoolExecutor(4) as elsewhere:
        asking = [elsewhere.submit(_asked_elsewhere, task_id, hook) for hook in hooks]
        promised = [each.result(30) for each in asking]
    assert sum(each is not None for each in promised) == 5
    assert Delivery.objects.count() == 5


@pytest.mark.django_db(transaction=True)
def test_who_acknowledges_what_somebody_else_just_does_is_told_when():
    """A client that asks again before its first try has come to its end, for one."""
    [task_id] = ended(owner="acme")
    entry = asked(task_id).id
    run(fill_inboxes(10))
    first = Outside()
    at = first.run(acknowledge(entry, "acme"))
    with ThreadPoolExecutor(1) as elsewhere:
        again = elsewhere.submit(_acknowledged_elsewhere, entry)
        _until_somebody_waits()
        first.commit()
        assert again.result(20) == at


def _acknowledged_elsewhere(entry):
    other = Outside()
    at = other.run(acknowledge(entry, "acme"))
    other.commit()
    return at


def _asked_elsewhere(task_id, target=INBOX):
    asker = Outside()
    asker.run(lock_task(task_id))
    promised = asker.run(promise(task_id, target))
    asker.commit()
    return promised


def _cancelled_elsewhere(task_id):
    ender = Outside()
    cancelled = ender.run(cancel(task_id))
    ender.commit()
    return cancelled


def _filled_elsewhere():
    filler = Outside()
    filled = filler.run(fill_inboxes(10))
    filler.commit()
    return filled


def _until_somebody_waits():
    from tests.support import eventually

    def waits():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            return cursor.fetchone()[0]

    eventually(waits, 20)


@pytest.mark.parametrize(
    ("call", "index"),
    [
        (due_routes(Route()), "asyncpoll_delivery_routes"),
        (due_routes(Route()), "asyncpoll_delivery_inboxes"),
        (fill_inboxes(10), "asyncpoll_delivery_inboxes"),
        (take_deliveries({Route("acme", "h"): 1}, 30.0), "asyncpoll_delivery_routes"),
    ],
)
def test_who_is_due_is_asked_of_an_index(call, index):
    """However many are waiting, or were told before."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {call.sql}", dict(call.params))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert index in plan, plan

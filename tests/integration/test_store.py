"""The statements of the store, against a real Postgres."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from asyncpoll.contract import TERMINAL, Status
from tasks_app.models import Task, TaskEvent
from tasks_app.models.status import TRANSITIONS
from tasks_app.models.task import new_task_id
from tasks_app.store import (
    Change,
    Lane,
    Milestone,
    NewTask,
    Share,
    WorkerFacts,
    cancel,
    claim,
    commit,
    delete,
    dsn,
    enqueue,
    give_back,
    heartbeat,
    lanes,
    promote,
    read,
    rescue,
    run_again,
    step,
)
from tasks_app.store.driver import run
from tests.integration.claiming import claim_now

WORKER = uuid.uuid4()


def new(**changes):
    task = NewTask(new_task_id(), "sample.add", "default", "", 0, "[]", "{}", 3, 60.0)
    return replace(task, **changes)


def enqueued(count=1, **changes):
    tasks = [new(**changes) for _ in range(count)]
    run(enqueue(tasks))
    return [task.id for task in tasks]


def claimed(limit=100, queues=None, worker=WORKER, lease=15.0):
    return claim_now(limit, queues, worker, lease)


def change(task, status, kind, **facts):
    return Change(task.id, task.attempt, status, (Milestone(kind),), **facts)


def versions(task_id):
    return list(
        TaskEvent.objects.filter(task_id=task_id).order_by("version").values_list("version", "kind")
    )


@pytest.mark.django_db
class TestClaim:
    """Who gets what."""

    def test_it_takes_the_most_urgent_first_and_never_more_than_asked(self):
        """A priority point is a head start; the rest is first come, first served."""
        (plain, later) = enqueued(2)
        (urgent,) = enqueued(priority=10)
        assert [task.id for task in claimed(1)] == [urgent]
        assert [task.id for task in claimed(2)] == [plain, later]
        assert claimed(1) == []

    def test_tasks_whose_timeouts_are_int_and_float_are_stored_together(self):
        """A list of both can't be sent to the database."""
        run(enqueue([new(timeout_seconds=600), new(timeout_seconds=0.5)]))
        assert sorted(task.timeout_seconds for task in claimed()) == [0.5, 600.0]

    def test_it_never_claims_more_than_asked_from_a_table_without_statistics(self):
        """`id IN (SELECT … LIMIT 1 FOR UPDATE SKIP LOCKED)` would: in the plans that may come of that, it is asked anew
        for each row of the table."""
        with connection.cursor() as cursor:
            for method in ("hashjoin", "mergejoin", "hashagg", "material", "sort", "indexscan"):
                cursor.execute(f"SET LOCAL enable_{method} = off")
        enqueued(50)
        for _ in range(50):
            assert len(claimed(1)) == 1

    def test_it_takes_from_the_named_queues_only(self):
        """`--queues a,b`; without it, from every queue there is."""
        for queue in ("a", "b", "c"):
            enqueued(2, queue=queue)
        assert {task.queue for task in claimed(10, ["a", "c"])} == {"a", "c"}
        assert {task.queue for task in claimed(10)} == {"b"}

    def test_a_moment_in_the_past_is_now(self):
        """It neither overtakes who was there before, nor counts as waiting."""
        (first,) = enqueued()
        (late,) = enqueued(run_at=timezone.now() - timezone.timedelta(days=1))
        claims = claimed(2)
        assert [task.id for task in claims] == [first, late]
        assert claims[1].queue_wait_seconds < 3600

    def test_a_task_that_is_not_due_is_not_claimed_until_it_is(self):
        """It enters the claim index when due, not before."""
        (later,) = enqueued(run_at=timezone.now() + timezone.timedelta(hours=1))
        assert claimed() == []
        moved, seconds = run(promote(10))
        assert moved == 0
        assert 3500 < seconds <= 3600
        Task.objects.filter(id=later).update(run_at=timezone.now())
        assert run(promote(10))[0] == 1
        assert [task.id for task in claimed()] == [later]

    def test_a_history_row_that_should_not_be_there_stops_nobody(self):
        """Restored or written by hand: the row is the truth, and its history follows it."""
        first, second = enqueued(2)
        TaskEvent.objects.create(task_id=first, version=2, kind="failed", at=timezone.now())
        assert [task.id for task in claimed()] == [first, second]
        assert versions(first) == [(1, "enqueued"), (2, "started")]

    def test_each_claim_is_a_version_and_an_attempt(self):
        """The fence grows with each claim, and nothing else makes it grow."""
        (task_id,) = enqueued()
        (task,) = claimed()
        assert (task.version, task.attempt, task.failures) == (2, 1, 0)
        run(commit(WORKER, [change(task, Status.PENDING, "released")]))
        (again,) = claimed()
        assert (again.version, again.attempt, again.failures) == (4, 2, 0)
        assert versions(task_id) == [
            (1, "enqueued"),
            (2, "started"),
            (3, "released"),
            (4, "started"),
        ]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("result", "comes"),
    [("1", True), ('"' + "a" * 60_000 + '"', True), ('"' + "a" * 70_000 + '"', False)],
)
def test_a_result_comes_with_its_row_as_long_as_its_text_is_small(result, comes):
    """However well it compresses: a thousand rows may be read at once."""
    enqueued()
    (task,) = claimed()
    run(commit(WORKER, [change(task, Status.SUCCESS, "succeeded", result=result)]))
    snapshot = run(read([task.id]))[task.id]
    assert (snapshot.result, snapshot.result_apart) == ((result, False) if comes else (None, True))


@pytest.mark.django_db
class TestCommit:
    """What becomes visible."""

    def test_a_batch_makes_one_version_per_milestone_with_its_history(self):
        """No version is skipped, whatever shares the batch."""
        enqueued(3)
        first, second, third = claimed()
        done = run(
            commit(
                WORKER,
                [
                    Change(
                        first.id,
                        1,
                        Status.SUCCESS,
                        (Milestone("progress", 0.5, "half"), Milestone("succeeded", 1.0)),
                        result='{"a":1}',
                    ),
                    Change(
                        second.id, 1, Status.RUNNING, (Milestone("progress", 0.25, "a", '{"n":1}'),)
                    ),
                    Change(
                        third.id,
                        1,
                        Status.FAILED,
                        (Milestone("failed"),),
                        error_type="ValueError",
                        error_message="no",
                        failed=True,
                    ),
                ],
            )
        )
        assert {(item.id, item.status, item.version) for item in done} == {
            (first.id, Status.SUCCESS, 4),
            (second.id, Status.RUNNING, 3),
            (third.id, Status.FAILED, 3),
        }
        assert versions(first.id) == [
            (1, "enqueued"),
            (2, "started"),
            (3, "progress"),
            (4, "succeeded"),
        ]
        rows = run(read([first.id, second.id, third.id]))
        assert (json.loads(rows[first.id].result), rows[first.id].progress) == ({"a": 1}, 1.0)
        assert (rows[second.id].progress, rows[second.id].message) == (0.25, "a")
        assert (rows[third.id].error_type, rows[third.id].error_message) == ("ValueError", "no")
        assert TaskEvent.objects.get(task_id=second.id, version=3).data == {"n": 1}

    @pytest.mark.parametrize("stale", ["attempt", "worker", "status"])
    def test_a_fenced_outcome_changes_nothing_and_is_missing_from_the_answer(self, stale):
        """Another attempt, another worker, or a task that is over."""
        (task_id,) = enqueued()
        (task,) = claimed()
        if stale == "status":
            run(commit(WORKER, [change(task, Status.SUCCESS, "succeeded", result="1")]))
        before = Task.objects.values().get(id=task_id)
        late = change(task, Status.FAILED, "failed")
        if stale == "attempt":
            late = late._replace(attempt=2)
        worker = uuid.uuid4() if stale == "worker" else WORKER
        assert run(commit(worker, [late])) == []
        assert Task.objects.values().get(id=task_id) == before

    def test_a_retry_of_a_cancelled_task_is_its_end(self):
        """Nobody wants another attempt."""
        (task_id,) = enqueued()
        (task,) = claimed()
        run(cancel(task_id))
        (done,) = run(
            commit(WORKER, [change(task, Status.PENDING, "retried", failed=True, delay_seconds=5)])
        )
        assert done.status is Status.CANCELLED
        assert versions(task_id)[-1] == (4, "cancelled")

    def test_a_retry_waits_in_the_due_index(self):
        """Deferred tasks enter the ready index when due."""
        (task_id,) = enqueued()
        (task,) = claimed()
        run(
            commit(WORKER, [change(task, Status.PENDING, "retried", failed=True, delay_seconds=60)])
        )
        row = Task.objects.get(id=task_id)
        assert (row.status, row.ready, row.failures, row.lease_expires_at) == (
            "PENDING",
            False,
            1,
            None,
        )
        assert claimed() == []


@pytest.mark.django_db
class TestLeases:
    """Who still holds what."""

    facts = WorkerFacts(WORKER, "host", 1, ("default",), 5)

    def expire(self, task_id):
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE tasks_app_task SET lease_expires_at = now() - interval '2 s' WHERE id = %s",
                [task_id],
            )

    def test_a_heartbeat_extends_what_is_held_and_names_nothing_else(self):
        """Those missing from the answer are lost."""
        enqueued(2)
        mine, other = claimed(1) + claimed(1, worker=uuid.uuid4())
        answer = run(heartbeat(self.facts, [(mine.id, 1), (other.id, 1), (mine.id, 7)], 15.0))
        assert answer == {(mine.id, 1): False}

    @pytest.mark.django_db(transaction=True)
    def test_a_row_that_somebody_locked_costs_no_other_its_lease(self):
        """A long transaction in the admin must not stall a worker's heartbeat."""
        first, second = enqueued(2)
        claimed()
        before = {row.id: row.lease_expires_at for row in Task.objects.all()}
        with psycopg.connect(**dsn.parameters("test")) as stranger:
            stranger.execute("SELECT 1 FROM tasks_app_task WHERE id = %s FOR UPDATE", [first])
            answer = run(heartbeat(self.facts, [(first, 1), (second, 1)], 30.0))
        assert answer.keys() == {(first, 1), (second, 1)}
        after = {row.id: row.lease_expires_at for row in Task.objects.all()}
        assert after[first] == before[first]
        assert after[second] > before[second]

    def test_a_heartbeat_brings_the_news_of_a_cancel(self):
        """In case the notification was lost."""
        (task_id,) = enqueued()
        claimed()
        run(cancel(task_id))
        assert run(heartbeat(self.facts, [(task_id, 1)], 15.0)) == {(task_id, 1): True}

    def test_a_lease_never_reaches_past_the_deadline_of_its_attempt(self):
        """So that a heartbeat can't keep a hung task alive."""
        (task_id,) = enqueued(timeout_seconds=5.0)
        claimed(lease=15.0)
        run(heartbeat(self.facts, [(task_id, 1)], 15.0))
        row = Task.objects.get(id=task_id)
        assert (row.lease_expires_at - row.started_at).total_seconds() == pytest.approx(5.0)

    def test_an_expired_lease_gives_the_task_to_another_attempt(self):
        """After a delay, and as a failure."""
        (task_id,) = enqueued()
        claimed()
        assert run(rescue(10, 1.0, 60.0)) == []
        self.expire(task_id)
        (done,) = run(rescue(10, 1.0, 60.0))
        assert (done.id, done.status, done.version) == (task_id, Status.PENDING, 3)
        assert Task.objects.get(id=task_id).failures == 1
        assert versions(task_id)[-1] == (3, "rescued")

    def test_the_delay_after_a_rescue_is_that_of_the_task(self):
        """Where it has a backoff of its own; else the project's."""
        own, other = enqueued(1, name="own") + enqueued()
        claimed(2)
        self.expire(own)
        self.expire(other)
        run(rescue(10, 0.0, 0.0, {"own": (1e6, 1e7), "nobody's": (1.0, 2.0)}))
        waits = {
            task.id: (task.run_at - task.started_at).total_seconds() for task in Task.objects.all()
        }
        assert waits[own] > 60 > waits[other]

    def test_a_worker_gives_back_what_is_its_own_without_its_knowing(self):
        """To be claimed at once, and as no failure; neither what it knows nor what others hold."""
        known, lost, cancelled, over = enqueued(4)
        claimed()
        run(cancel(cancelled))
        run(commit(WORKER, [Change(over, 1, Status.SUCCESS, (Milestone("succeeded"),), "1")]))
        (foreign,) = enqueued()
        claimed(worker=uuid.uuid4())
        given = {task.id: task.status for task in run(give_back(WORKER, [(known, 1)]))}
        assert given == {lost: Status.PENDING, cancelled: Status.CANCELLED}
        assert versions(lost) == [(1, "enqueued"), (2, "started"), (3, "released")]
        assert versions(cancelled)[-1] == (4, "cancelled")
        assert Task.objects.get(id=foreign).status == "RUNNING"
        (again,) = claimed()
        assert (again.id, again.attempt, again.failures) == (lost, 2, 0)
        assert [task.id for task in run(give_back(WORKER, [(known, 1), (lost, 1)]))] == [lost]

    def test_a_task_that_kills_its_worker_ends_when_its_attempts_are_used_up(self):
        """It cannot loop for ever."""
        (task_id,) = enqueued(max_attempts=2)
        for _ in range(2):
            Task.objects.filter(id=task_id).update(ready=True)
            claimed()
            self.expire(task_id)
            [ended] = run(rescue(10, 0.001, 0.001))
        assert (ended.name, ended.queue, ended.attempt) == ("sample.add", "default", 2)
        assert ended.ran_seconds > 0
        assert ended.waited_seconds >= 0
        row = Task.objects.get(id=task_id)
        assert (row.status, row.error_type) == ("FAILED", "LeaseExpired")
        assert row.error_message == "The worker that ran attempt 2 stopped answering."

    def test_a_cancelled_task_whose_worker_died_is_cancelled(self):
        """Its end was asked for."""
        (task_id,) = enqueued()
        claimed()
        run(cancel(task_id))
        self.expire(task_id)
        (done,) = run(rescue(10, 1.0, 60.0))
        assert done.status is Status.CANCELLED


@pytest.mark.django_db
class TestOtherVerbs:
    """Cancel, run again, step, delete."""

    def test_cancel_ends_a_pending_task_and_asks_a_running_one_once(self):
        """Idempotent: the second time changes nothing."""
        pending, running = enqueued(2)
        Task.objects.filter(id=pending).update(ready=False)
        claimed()
        assert run(cancel(pending)).status is Status.CANCELLED
        assert run(cancel(running)).status is Status.RUNNING
        assert run(cancel(pending)) is None
        assert run(cancel(running)) is None
        assert run(cancel(uuid.uuid4())) is None

    def test_run_again_copies_a_task_that_is_over_and_leaves_it(self):
        """Terminal rows never change."""
        (task_id,) = enqueued(owner="alice", priority=3)
        assert run(run_again(task_id, uuid.uuid4())) is None
        run(cancel(task_id))
        before = Task.objects.values().get(id=task_id)
        copy_id, queue = run(run_again(task_id, new_task_id()))
        copy = Task.objects.get(id=copy_id)
        assert (copy.retried_from, copy.owner, copy.priority, copy.status, copy.version, queue) == (
            task_id,
            "alice",
            3,
            "PENDING",
            1,
            "default",
        )
        assert Task.objects.values().get(id=task_id) == before

    def test_steps_of_other_code_make_versions(self):
        """A pipeline elsewhere can be waited for like a worker's task."""
        (task_id,) = enqueued(queue="elsewhere")
        assert run(step(task_id, Status.RUNNING, progress=0.5, message="half")) == 2
        assert claimed() == []
        assert run(step(task_id, Status.SUCCESS, progress=1.0, result='{"ok":true}')) == 3
        assert run(step(task_id, Status.RUNNING)) is None
        assert versions(task_id) == [(1, "enqueued"), (2, "progress"), (3, "succeeded")]

    def test_a_step_can_not_touch_what_a_worker_holds(self):
        """One holder at a time."""
        (task_id,) = enqueued()
        claimed()
        assert run(step(task_id, Status.SUCCESS, result="1")) is None

    def test_delete_takes_the_history_along(self):
        """Both tables, one statement."""
        task_id, other = enqueued(2)
        assert run(delete([task_id, uuid.uuid4()])) == [task_id]
        assert versions(task_id) == []
        assert versions(other) == [(1, "enqueued")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "broken",
    [
        {"status": "DONE"},
        {"version": 0},
        {"priority": 101},
        {"progress": 1.5},
        {"ready": True, "status": "CANCELLED", "finished_at": "now"},
        {"status": "RUNNING"},
        {"status": "SUCCESS"},
        {"finished_at": "now"},
        {"result": 1},
        {"failures": 1},
    ],
)
def test_the_database_refuses_a_row_that_the_state_machine_does_not_know(broken):
    """CHECK constraints mirror it, for whoever writes past the store."""
    (task_id,) = enqueued()
    values = {name: timezone.now() if value == "now" else value for name, value in broken.items()}
    with pytest.raises(IntegrityError), transaction.atomic():
        Task.objects.filter(id=task_id).update(**values)


def test_terminal_states_lead_nowhere():
    """SUCCESS, FAILED and CANCELLED never change again."""
    assert {status for status, following in TRANSITIONS.items() if not following} == set(TERMINAL)


@pytest.mark.django_db
def test_a_claim_uses_the_ready_index_among_many_finished_rows():
    """100,000 finished and 5,000 ready rows: the cost of a claim follows what it takes, not what lies around."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO tasks_app_task (
                id, name, queue, owner, priority, status, version, args, kwargs, result, error_type, error_message,
                traceback, message, attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at,
                created_at, finished_at, cancel_requested)
            SELECT gen_random_uuid(), 't', 'default', '', 0, CASE WHEN n <= 100000 THEN 'SUCCESS' ELSE 'PENDING' END, 3,
                '[]', '{}', NULL, '', '', '', '', 1, 0, 3, 60, n > 100000, now(), now(), now(),
                CASE WHEN n <= 100000 THEN now() END, false
            FROM generate_series(1, 105000) n
            """
        )
        cursor.execute("ANALYZE tasks_app_task")
        lane = Lane("default", "")
        for call in (
            lanes(None),
            lanes(["default"]),
            claim(WORKER, [Share(lane, 10)], 15.0),
        ):
            cursor.execute(f"EXPLAIN (FORMAT JSON) {call.sql}", dict(call.params))
            plan = json.dumps(cursor.fetchone()[0])
            assert '"asyncpoll_lanes"' in plan
            scans = [
                node
                for node in nodes(json.loads(plan)[0]["Plan"])
                if node.get("Relation Name") == "tasks_app_task"
            ]
            assert "Seq Scan" not in {node["Node Type"] for node in scans}
        cursor.execute(
            "EXPLAIN (FORMAT JSON) SELECT id FROM tasks_app_task WHERE finished_at < now() - interval '30 d' ORDER BY finished_at LIMIT 10"
        )
        assert '"asyncpoll_finished"' in json.dumps(cursor.fetchone()[0])


def nodes(plan):
    """Every node of a plan."""
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)

"""How Postgres finds what a list shows: by an index, and never by reading the table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from asyncpoll.contract import Status
from tasks_app.limits import new_task_id
from tasks_app.models import Task
from tasks_app.store import Sought, count_sought
from tasks_app.store.driver import run
from tests.integration.admin_support import LIST

pytestmark = pytest.mark.django_db
_PKEY, _OWNED, _LEASES = "tasks_app_task_pkey", "asyncpoll_owned", "asyncpoll_leases"
_UNSUCCESSFUL = "asyncpoll_unsuccessful"
_TASKS = """
INSERT INTO tasks_app_task (
    id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback, message, attempt,
    failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at, started_at, finished_at, worker,
    lease_expires_at, cancel_requested
)
SELECT ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'type_' || n % 20, 'q' || n % 3,
    CASE WHEN n % 4 > 0 THEN 'o' || n % 500 ELSE '' END, 0, status, 3, '[]', '{}', '', '', '', '', 1, 0, 3, 600, false, at, at,
    at, CASE WHEN status <> 'PENDING' THEN at END, CASE WHEN status IN ('SUCCESS', 'FAILED') THEN at END,
    CASE WHEN status <> 'PENDING' THEN gen_random_uuid() END, CASE WHEN status = 'RUNNING' THEN at END, false
FROM (
    SELECT n, now() - interval '1 d' + n * interval '1 s' AS at,
        CASE WHEN n % 1500 = 0 THEN 'RUNNING' WHEN n % 1000 = 1 THEN 'FAILED' WHEN n % 1000 = 2 THEN 'PENDING'
            ELSE 'SUCCESS' END AS status
    FROM generate_series(1, 10000) AS n
) AS numbered
"""


@pytest.fixture
def table() -> None:
    """Enough tasks for a plan to matter, and what Postgres knows of them."""
    with connection.cursor() as cursor:
        cursor.execute(_TASKS)
        cursor.execute("ANALYZE tasks_app_task")


def plans(client: Client, query: dict[str, str]) -> list[list[dict[str, Any]]]:
    """The steps of each statement that a page of the list asks of the table."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(reverse(LIST), query).status_code == 200
    statements = [each["sql"] for each in captured if 'FROM "tasks_app_task"' in each["sql"]]
    with connection.cursor() as cursor:
        found = []
        for statement in statements:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}")
            [(plan,)] = cursor.fetchall()
            found.append(
                [*_steps((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])]
            )
    return found


def _steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from _steps(part)


CASES: list[tuple[dict[str, str], set[str]]] = [
    ({}, {_PKEY}),
    ({"p": "01900000-0000-7000-8000-000000001000"}, {_PKEY}),
    ({"status": "SUCCESS"}, {_PKEY}),
    ({"status": "FAILED"}, {_UNSUCCESSFUL}),
    ({"status": "CANCELLED", "type": "type_7"}, {_UNSUCCESSFUL}),
    ({"type": "type_7"}, {_PKEY}),
    ({"type": "nothing", "queue": "q1", "status": "PENDING"}, {_PKEY}),
    ({"q": "type:rare"}, {_PKEY}),
    ({"q": "anything"}, {_PKEY}),
    ({"q": "01900000-0000-7000-8000-000000001000"}, {_PKEY}),
    ({"q": "owner:o7"}, {_OWNED}),
    ({"q": "owner:o7", "status": "FAILED"}, {_OWNED, _UNSUCCESSFUL}),
]


def test_no_page_reads_more_of_the_table_than_an_index_gives(
    admin_client: Client, table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A twentieth of it where few rows pass; running ones, which are few, by their leases."""
    monkeypatch.setattr("tasks_app.admin.changelist.SPAN", 500)
    for query, indexes in CASES:
        steps = [step for each in plans(admin_client, query) for step in each]
        assert "Seq Scan" not in {step["Node Type"] for step in steps}, query
        used = {step["Index Name"] for step in steps if "Index Name" in step}
        assert used == indexes, (query, used)
    [steps] = plans(admin_client, {"status": "RUNNING"})
    assert [step["Index Name"] for step in steps if "Index Name" in step] == [_LEASES]
    assert not [step for step in steps if step["Node Type"] == "Seq Scan"]


@pytest.mark.parametrize(
    ("sought", "counted", "indexes"),
    [
        (Sought(None, Status.FAILED), 10, {_UNSUCCESSFUL}),
        (Sought(None, Status.FAILED, "type_1", "q1"), 4, {_UNSUCCESSFUL}),
        (Sought(None, Status.CANCELLED), 0, {_UNSUCCESSFUL}),
        (Sought(None, Status.PENDING), 10, {"asyncpoll_lanes", "asyncpoll_due"}),
        (Sought(None, Status.RUNNING), 6, {_LEASES}),
        (Sought("o7"), 20, {_OWNED}),
        (Sought("o7", Status.SUCCESS), 20, {_OWNED}),
    ],
)
def test_all_that_match_are_counted_by_an_index(
    table: None, sought: Sought, counted: int, indexes: set[str]
) -> None:
    """Whatever else the table holds."""
    call = count_sought(sought, new_task_id())
    assert run(call) == counted
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {call.sql}", call.params)
        [(plan,)] = cursor.fetchall()
    steps = [*_steps((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])]
    assert {step["Index Name"] for step in steps if "Index Name" in step} == indexes
    assert "Seq Scan" not in {step["Node Type"] for step in steps}


def test_who_runs_a_task_again_is_found_by_an_index(table: None) -> None:
    """Few tasks are in it."""
    again = Task.objects.filter(retried_from=new_task_id()).order_by("-id")[:5]
    assert "asyncpoll_retries" in again.explain()

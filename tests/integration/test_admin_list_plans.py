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

from tasks_app.limits import new_task_id
from tasks_app.models import Task
from tests.integration.admin_support import LIST

pytestmark = pytest.mark.django_db
_PKEY, _OWNED, _LEASES = "tasks_app_task_pkey", "asyncpoll_owned", "asyncpoll_leases"
_TASKS = """
INSERT INTO tasks_app_task (
    id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback, message, attempt,
    failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at, started_at, finished_at, worker,
    lease_expires_at, cancel_requested
)
SELECT ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'type_' || n % 20, 'q' || n % 3,
    CASE WHEN n % 4 > 0 THEN 'o' || n % 500 ELSE '' END, 0, status, 3, '[]', '{}', '', '', '', '', 1, 0, 3, 600, false, at, at,
    at, at, CASE WHEN status = 'SUCCESS' THEN at END, gen_random_uuid(), CASE WHEN status = 'RUNNING' THEN at END, false
FROM (
    SELECT n, now() - interval '1 d' + n * interval '1 s' AS at,
        CASE WHEN n % 1500 = 0 THEN 'RUNNING' ELSE 'SUCCESS' END AS status
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


CASES: list[tuple[dict[str, str], str]] = [
    ({}, _PKEY),
    ({"p": "01900000-0000-7000-8000-000000001000"}, _PKEY),
    ({"status": "SUCCESS"}, _PKEY),
    ({"status": "FAILED"}, _PKEY),
    ({"type": "type_7"}, _PKEY),
    ({"type": "nothing", "queue": "q1", "status": "PENDING"}, _PKEY),
    ({"q": "type:rare"}, _PKEY),
    ({"q": "anything"}, _PKEY),
    ({"q": "01900000-0000-7000-8000-000000001000"}, _PKEY),
    ({"q": "owner:o7"}, _OWNED),
    ({"q": "owner:o7", "status": "FAILED"}, _OWNED),
]


def test_no_page_reads_more_of_the_table_than_an_index_gives(
    admin_client: Client, table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A twentieth of it where few rows pass; running ones, which are few, by their leases."""
    monkeypatch.setattr("tasks_app.admin.changelist.SPAN", 500)
    for query, index in CASES:
        for steps in plans(admin_client, query):
            assert "Seq Scan" not in {step["Node Type"] for step in steps}, query
            used = {step["Index Name"] for step in steps if "Index Name" in step}
            assert used == {index}, (query, used)
    [steps] = plans(admin_client, {"status": "RUNNING"})
    assert [step["Index Name"] for step in steps if "Index Name" in step] == [_LEASES]
    assert not [step for step in steps if step["Node Type"] == "Seq Scan"]


def test_who_runs_a_task_again_is_found_by_an_index(table: None) -> None:
    """Few tasks are in it."""
    again = Task.objects.filter(retried_from=new_task_id()).order_by("-id")[:5]
    assert "asyncpoll_retries" in again.explain()

"""Lists: newest first, a page at a time, and no page looks at more rows than one statement should."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from django.db import connection
from psycopg.rows import dict_row

from asyncpoll.contract import Status
from tasks_app.api.identity import Identity, poll_ticket
from tasks_app.store import Sought, dsn, list_tasks, listing, step
from tests.integration.api_support import API, is_problem, mapped, stored

pytestmark = pytest.mark.django_db(transaction=True)
ALICE = {"Authorization": "Test alice"}


async def listed(client: httpx.AsyncClient, headers: Any = None, **parameters: Any) -> Any:
    response = await client.get(f"{API}/tasks", params=parameters, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


async def everything(client: httpx.AsyncClient, headers: Any = None, **parameters: Any) -> Any:
    """The ids of every page, and how many pages there were."""
    ids: list[str] = []
    pages = 0
    while True:
        body = await listed(client, headers, **parameters)
        ids += [task["task_id"] for task in body["tasks"]]
        pages += 1
        if body["next_cursor"] is None:
            return ids, pages
        parameters["cursor"] = body["next_cursor"]


async def several(service, count, **changes) -> list[str]:
    """The newest first."""
    return [str(await stored(service, **changes)) for _ in range(count)][::-1]


async def test_the_newest_come_first_and_pages_follow_without_a_count(client, service):
    """Each task once, also where the last page is full."""
    ids = await several(service, 7)
    assert await everything(client, limit=3) == (ids, 3)
    assert await everything(client, limit=7) == (ids, 1)
    assert await everything(client) == (ids, 1)
    assert set(await listed(client)) == {"tasks", "next_cursor"}


async def test_tasks_that_come_meanwhile_move_no_page(client, service):
    """Nothing is shown twice, nothing is left out."""
    ids = await several(service, 4)
    first = await listed(client, limit=2)
    await several(service, 3)
    second = await listed(client, limit=2, cursor=first["next_cursor"])
    assert [task["task_id"] for task in first["tasks"] + second["tasks"]] == ids


async def test_a_listed_task_is_the_task_without_its_result(client, service):
    """Results may be large, and a page has many."""
    (task_id,) = await several(service, 1)
    await service.pool.run(step(UUID(task_id), Status.SUCCESS, result='"x"'))
    (shown,) = (await listed(client))["tasks"]
    whole = (await client.get(f"{API}/tasks/{task_id}")).json()
    assert whole.pop("result") == "x"
    assert shown == whole


async def test_filters_narrow_the_list(client, service):
    """By status, type and queue, and by all of them."""
    plain = await several(service, 2)
    other = await several(service, 2, name="sample.other", queue="slow")
    await service.pool.run(step(UUID(other[0]), Status.RUNNING))
    assert (await everything(client, task="sample.other"))[0] == other
    assert (await everything(client, queue="outside"))[0] == plain
    assert (await everything(client, status="RUNNING"))[0] == other[:1]
    assert (await everything(client, status="PENDING", task="sample.other"))[0] == other[1:]
    assert (await everything(client, queue="outside", task="sample.other"))[0] == []
    assert (await everything(client, queue="no such queue"))[0] == []


async def test_everybody_sees_their_own(client, service, settings):
    """By header, whatever cursor they send."""
    mine, theirs = await several(service, 3, owner="alice"), await several(service, 3, owner="bob")
    nobodys = await several(service, 2)
    mapped(settings)
    assert (await everything(client, ALICE, limit=2))[0] == mine
    assert (await everything(client, {"Authorization": "Test bob"}))[0] == theirs
    cursor = (await listed(client, ALICE, limit=1))["next_cursor"]
    response = await client.get(
        f"{API}/tasks?limit=1&cursor={cursor}", headers={"Authorization": "Test bob"}
    )
    is_problem(response, 400, "invalid-parameter", "cursor")
    page = await service.pool.run(list_tasks(Sought(owner=None), 200))
    assert [str(row.id) for row in page.tasks] == nobodys + theirs + mine
    page = await service.pool.run(list_tasks(Sought(owner=""), 200))
    assert [str(row.id) for row in page.tasks] == nobodys


async def test_a_filter_that_few_rows_pass_makes_short_pages_and_no_long_search(
    client, service, monkeypatch
):
    """Each page looks at so many rows, and says where the next one goes on."""
    monkeypatch.setattr(listing, "_SPAN", 4)
    ids = await several(service, 9)
    for task_id in (ids[0], ids[3], ids[8]):
        await service.pool.run(step(UUID(task_id), Status.RUNNING))
    assert await everything(client, status="RUNNING") == ([ids[0], ids[3], ids[8]], 3)
    assert await everything(client, status="FAILED") == ([], 3)
    assert (await everything(client, limit=1, status="RUNNING"))[0] == [ids[0], ids[3], ids[8]]
    assert (await everything(client, limit=2))[0] == ids


async def test_where_a_search_goes_on_does_not_tell_whose_task_it_has_come_to(
    client, service, settings, monkeypatch
):
    """Who owns nothing is searched for among all: a page can end at somebody else's task."""
    monkeypatch.setattr(listing, "_SPAN", 2)
    mine = await several(service, 1)
    foreign = await several(service, 4, owner="bob")
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "AUTHENTICATE": f"{__name__}.nobody"}
    cursors, parameters = [], {}
    while cursor := (await listed(client, **parameters))["next_cursor"]:
        parameters["cursor"] = cursor
        cursors.append(urlsafe_b64decode(cursor))
    assert len(cursors) == 2
    for task_id in (*mine, *foreign):
        assert not any(UUID(task_id).bytes[:6] in cursor for cursor in cursors)
    assert await everything(client) == (mine, 3)


async def nobody(request: httpx.Request) -> Identity:
    """Everybody is the owner without a name."""
    return Identity("")


@pytest.mark.parametrize(
    ("query", "parameter", "words"),
    [
        ("status=running", "status", "one of PENDING, RUNNING, SUCCESS, FAILED, CANCELLED"),
        ("status=", "status", "one of"),
        ("task=", "task", "1 to 200 characters"),
        ("task=%00", "task", "NUL"),
        (f"queue={'q' * 201}", "queue", "1 to 200"),
        ("limit=0", "limit", "from 1 to 200"),
        ("limit=201", "limit", "from 1 to 200"),
        ("limit=-1", "limit", "whole number"),
        ("limit=ten", "limit", "whole number"),
        ("limit=%EF%BC%91", "limit", "whole number"),
        ("limit=" + "9" * 5_000, "limit", "whole number"),
        ("cursor=", "cursor", "next_cursor"),
        ("cursor=abc", "cursor", "next_cursor"),
        ("cursor=%C3%A9", "cursor", "next_cursor"),
        ("cursor=" + "A" * 28, "cursor", "next_cursor"),
        ("status=FAILED&status=FAILED", "status", "more than once"),
    ],
)
async def test_a_filter_that_breaks_a_rule_is_refused(client, service, query, parameter, words):
    """Naming the rule."""
    response = await client.get(f"{API}/tasks?{query}")
    assert words in is_problem(response, 400, "invalid-parameter", parameter)


async def test_a_cursor_belongs_to_its_filters(client, service):
    """With others it would leave tasks out."""
    await several(service, 3)
    cursor = (await listed(client, limit=1, queue="outside"))["next_cursor"]
    response = await client.get(f"{API}/tasks?limit=1&cursor={cursor}")
    assert "same filters" in is_problem(response, 400, "invalid-parameter", "cursor")


async def test_a_ticket_lists_nothing(client, service, settings):
    """It is for one task."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}
    (task_id,) = await several(service, 1)
    response = await client.get(f"{API}/tasks?ticket={poll_ticket(UUID(task_id))}")
    is_problem(response, 403, "forbidden", "ticket")


async def test_methods(client, service):
    """GET and HEAD list, POST submits, and nothing else."""
    assert (await client.head(f"{API}/tasks")).status_code == 200
    options = await client.options(f"{API}/tasks")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")
    refused = await client.delete(f"{API}/tasks")
    is_problem(refused, 405, "method-not-allowed")
    assert refused.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    assert "GET, HEAD, POST, OPTIONS" in refused.json()["detail"]


def test_a_page_of_many_rows_reads_few():
    """Whatever is looked for among thirty thousand tasks of a thousand owners: by index, and within the span."""
    with connection.cursor() as cursor:
        cursor.execute(MANY)
        cursor.execute("ANALYZE tasks_app_task")
    for owner, index in OWNED.items():
        for status in (None, Status.FAILED):
            (scan,) = scans_of(list_tasks(Sought(owner, status), 50))
            assert scan["Index Name"] == index
            assert scan["Actual Rows"] <= listing._SPAN
            assert scan.get("Rows Removed by Filter", 0) == 0


def scans_of(call: Any) -> list[Any]:
    """How the tables were read."""
    with psycopg.connect(**dsn.parameters("test"), row_factory=dict_row) as other:
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {call.sql}"
        (plan,) = other.execute(explain, call.params, prepare=False).fetchone().values()
    return list(scans_in(plan[0]["Plan"]))


OWNED = {"big": "asyncpoll_owned", "": "tasks_app_task_pkey", None: "tasks_app_task_pkey"}


def scans_in(plan: Any) -> Any:
    if "Scan" in plan["Node Type"] and "Relation Name" in plan:
        yield plan
    for inner in plan.get("Plans", ()):
        yield from scans_in(inner)


MANY = """
INSERT INTO tasks_app_task (
    id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback,
    message, attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at,
    finished_at, cancel_requested)
SELECT gen_random_uuid(), 't', 'default', CASE n % 10 WHEN 0 THEN '' WHEN 1 THEN 'big' WHEN 2 THEN 'big' ELSE 'owner ' || n % 1000 END, 0,
    'SUCCESS', 3, '[]', '{}', '', '', '', '', 1, 0, 3, 60, false, now(), now(), now(), now(), false
FROM generate_series(1, 30000) n
"""

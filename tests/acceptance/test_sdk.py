"""The SDK and the real server, with a real worker behind it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncpoll.client import AsyncClient, PollLifetimeExceeded, Refused, TaskFailed, TaskNotFound
from asyncpoll.contract import Status
from tasks_app.models.task import new_task_id
from tests.acceptance.processes import server, worker
from tests.databases import created
from tests.sdk import KINDS, Caller

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"


@pytest.fixture(scope="module")
def base_url(migrated_template: str) -> Iterator[str]:
    """Where a server answers whose tasks are run."""
    with created(os.environ["DATABASE_URL"], migrated_template) as url:
        with server("daphne", url) as (port, _), worker(url):
            yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=KINDS)
async def client(request, base_url):
    """Either client."""
    async with Caller(request.param, base_url) as caller:
        yield caller


async def test_a_submitted_task_is_waited_for_and_every_change_is_told(client):
    """Submit, wait, and what changed on the way."""
    seen = []
    submitted = await client.submit("demo.dependency_report", kwargs={"limit": 2})
    assert (submitted.status, submitted.version) == (Status.PENDING, 1)
    over = await client.wait(submitted.task_id, on_change=seen.append)
    assert over.succeeded and over.raise_for_failure() is over
    assert [answer.version for answer in seen] == sorted({answer.version for answer in seen})
    assert seen[-1] == over == await client.wait(over.task_id, cursor=over.cursor)
    assert (await client.get(over.task_id)).result == over.result


async def test_every_milestone_is_told_once_and_a_cursor_goes_on_behind_it(client):
    """The history, from its beginning and from the middle."""
    submitted = await client.submit("demo.dependency_report", kwargs={"limit": 1})
    milestones = await client.watch(submitted.task_id)
    assert [one.version for one in milestones] == list(range(1, len(milestones) + 1))
    assert (milestones[0].kind, milestones[-1].kind) == ("enqueued", "succeeded")
    assert milestones[-1].answer.succeeded
    rest = await client.watch(submitted.task_id, cursor=submitted.cursor)
    assert [one.version for one in rest] == [one.version for one in milestones[1:]]


async def test_a_failed_task_is_an_answer_and_an_exception_only_on_demand(client):
    """Data, not an error."""
    submitted = await client.submit("demo.dependency_report", kwargs={"limit": 0}, max_attempts=1)
    over = await client.wait(submitted.task_id)
    assert over.status is Status.FAILED
    with pytest.raises(TaskFailed, match=over.task_id):
        over.raise_for_failure()


async def test_many_tasks_are_waited_for_with_one_request_at_a_time(client):
    """All in order, the first of them, and each as it ends; more than a hundred of them."""
    ids = [(await client.submit("sample.add", kwargs={"a": n})).task_id for n in range(110)]
    answers = await client.wait_all(ids)
    assert [answer.result for answer in answers] == list(range(1, 111))
    assert (await client.wait_any(ids[:3])).task_id in ids[:3]
    assert sorted(answer.task_id for answer in await client.as_completed(ids[:5])) == sorted(
        ids[:5]
    )


async def test_who_has_nothing_but_a_ticket_for_each_task_waits_for_them_together(client, base_url):
    """More than fit into one request, and without any other credentials."""
    made = [await client.submit("sample.add", kwargs={"a": n}) for n in range(42)]
    tickets = {answer.task_id: answer.poll_ticket for answer in made}
    kind = "async" if isinstance(client.client, AsyncClient) else "sync"
    async with Caller(kind, base_url, ticket=tickets) as holder:
        answers = await holder.wait_all(tickets)
    assert [answer.result for answer in answers] == list(range(1, 43))


async def test_one_unknown_id_among_many_is_raised_and_alone_as_well(client):
    """With what the server said."""
    known = await client.submit("sample.add", kwargs={"a": 1})
    missing = str(new_task_id())
    with pytest.raises(TaskNotFound, match=missing):
        await client.wait_all([known.task_id, missing])
    with pytest.raises(TaskNotFound, match="404"):
        await client.wait(missing)


async def test_the_same_key_is_the_same_task_and_a_refusal_has_its_problem(client):
    """Submitting is idempotent; what the server refuses is not tried again."""
    first = await client.submit("sample.add", kwargs={"a": 1}, idempotency_key=f"k{id(client)}")
    again = await client.submit("sample.add", kwargs={"a": 1}, idempotency_key=f"k{id(client)}")
    assert first.task_id == again.task_id
    with pytest.raises(Refused) as refused:
        await client.submit("sample.nonsense")
    assert refused.value.type == "/problems/unknown-task-type"


async def test_a_cancelled_task_ends_as_cancelled(client):
    """Before it was due."""
    later = await client.submit("sample.add", kwargs={"a": 1}, run_at="2030-01-01T00:00:00Z")
    assert (await client.cancel(later.task_id)).status is Status.CANCELLED
    assert (await client.wait(later.task_id)).status is Status.CANCELLED


async def test_who_gave_up_finds_the_end_in_the_inbox_until_it_is_acknowledged(client):
    """Promised by the server, delivered by it, and gone afterwards."""
    later = await client.submit("sample.add", kwargs={"a": 1}, run_at="2030-01-01T00:00:00Z")
    with pytest.raises(PollLifetimeExceeded) as raised:
        await client.wait(later.task_id, lifetime=0.5, notify=True)
    assert "the result will be in your message centre" in raised.value.for_user
    await client.cancel(later.task_id)
    (entry,) = await client.inbox(hold_seconds=30)
    assert (entry.task_id, entry.status) == (later.task_id, Status.CANCELLED)
    await client.acknowledge(entry)
    assert await client.inbox() == ()


def test_the_examples_of_the_documentation_run(base_url, capsys):
    """Every one, from the top of the page to its end."""
    names = {}
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(example.replace("http://127.0.0.1:8000", base_url), names)
    assert [answer.succeeded for answer in names["answers"]] == [True, True]
    assert names["body"]["status"] == "SUCCESS"
    assert names["entry"].task_id == names["later"].task_id
    assert "the result will be in your message centre." in capsys.readouterr().out

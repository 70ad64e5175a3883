"""What takes long to check is checked beside the event loop, a bounded number at a time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from asyncpoll.contract import Status
from tasks_app import catalogue, queues
from tasks_app.api.beside import LARGE_BYTES
from tasks_app.hold.admission import admission
from tasks_app.jsonschemas import validate
from tasks_app.store import step
from tasks_app.tasks import external_task
from tests.integration.api_support import API, is_problem, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)
SCHEMA = {"properties": {"numbers": {"items": {"type": "integer"}}}}


class Gate:
    """A check that lasts until the test lets it end."""

    def __init__(self):
        self.inside = self.most = 0
        self.opened = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, *arguments):
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        assert self.opened.wait(10), "nothing else was answered meanwhile"
        with self._lock:
            self.inside -= 1


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture(autouse=True)
def numbers(monkeypatch):
    """An external task, for this test only."""
    monkeypatch.setattr(catalogue, "_tasks", dict(catalogue._tasks))
    monkeypatch.setattr(queues, "_outside", dict(queues._outside))
    return external_task("large.numbers", SCHEMA, "outside", expose=True)


async def wake_one(client, service):
    """Hold a request, have its task change, and see it answered."""
    task_id = await stored(service)
    held = asyncio.ensure_future(
        client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version=1")
    )
    await aeventually(lambda: admission.held == 1)
    await service.pool.run(step(task_id, Status.RUNNING))
    return (await held).json()["version"]


@pytest.mark.parametrize(
    ("slow", "body"),
    [
        ("tasks_app.external.validate", {"task": "large.numbers", "kwargs": {"numbers": [1]}}),
        (
            "tasks_app.declaration.check_types",
            {"task": "sample.add", "kwargs": {"a": "x" * LARGE_BYTES}},
        ),
    ],
)
async def test_a_held_request_is_answered_while_a_body_is_checked(
    client, service, monkeypatch, gate, slow, body
):
    """By its schema, whatever its size; by a function's annotations, where it is large."""
    monkeypatch.setattr(slow, gate)
    posts = [asyncio.ensure_future(client.post(f"{API}/tasks", json=body)) for _ in range(6)]
    await aeventually(lambda: gate.inside == 2)
    assert await wake_one(client, service) == 2
    assert gate.inside == 2 and not any(post.done() for post in posts)
    gate.opened.set()
    assert {(await post).status_code for post in posts} == {202}
    assert gate.most == 2


async def test_a_held_request_is_answered_while_a_real_one_is_checked(client, service, monkeypatch):
    """Two hundred kilobytes of numbers, which take a good part of a second."""
    states = []

    def watched(*arguments):
        states.append("begun")
        validate(*arguments)
        states.append("ended")

    monkeypatch.setattr("tasks_app.external.validate", watched)
    body = {"task": "large.numbers", "kwargs": {"numbers": [1] * 100_000}}
    post = asyncio.ensure_future(client.post(f"{API}/tasks", json=body))
    await aeventually(lambda: states)
    assert await wake_one(client, service) == 2
    assert states == ["begun"]
    assert (await post).status_code == 202


async def test_a_submission_is_checked_once(client, monkeypatch):
    """Of an external task as of any other."""
    checked = []
    monkeypatch.setattr(
        "tasks_app.external.validate", lambda name, validator, arguments: checked.append(arguments)
    )
    body = {"task": "large.numbers", "kwargs": {"numbers": [1, 2.0]}}
    assert (await client.post(f"{API}/tasks", json=body)).status_code == 202
    assert checked == [{"numbers": [1, 2.0]}]


async def test_half_a_million_errors_are_not_listed(client):
    """Neither of values nor of members; pydantic would make all of them before anybody saw the first."""
    body = {"task": "sample.add", "kwargs": {str(number): 1 for number in range(1_000)}}
    is_problem(await client.post(f"{API}/tasks", json=body), 422, "invalid-arguments")
    said = is_problem(
        await client.post(f"{API}/tasks", json={str(number): 1 for number in range(1_000)}),
        422,
        "invalid-body",
    )
    assert said.startswith("The body has 1,000 members")

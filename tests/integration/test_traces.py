"""OpenTelemetry: one trace from whoever submitted, through the attempts, to the answer that told of the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tasks_app import events, traces
from tasks_app.hold.admission import admission
from tasks_app.models import Task
from tasks_app.observers import tracing
from tests import sample_tasks
from tests.integration.api_support import API
from tests.integration.executors_support import executing
from tests.support import aeventually
from tests.workers import run_one, working

pytestmark = pytest.mark.django_db(transaction=True)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What was exported meanwhile."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(traces, "provide", lambda: provider)
    end = tracing.install()
    yield exporter
    end()


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    """Each span by its name, in the order of their ends."""
    return {span.name: span for span in exporter.get_finished_spans()}


def parent(span: ReadableSpan) -> int | None:
    """The id of the span that it is within."""
    return span.parent.span_id if span.parent else None


async def test_one_trace_goes_from_the_caller_to_the_answer(
    client: httpx.AsyncClient, service: Any, spans: InMemorySpanExporter
) -> None:
    """The caller's own: what it sent as traceparent travels with the row."""
    async with working():
        body = {"task": "sample.add", "args": [1, 2]}
        made = await client.post(f"{API}/tasks", json=body, headers={"traceparent": CALLER})
        task_id = made.json()["task_id"]
        ended = await client.get(f"{API}/tasks/{task_id}/status?wait=true&timeout=20")
        assert ended.json()["outcome"] == "TERMINAL"
    found = by_name(spans)
    assert {"enqueue sample.add", "run sample.add", "answer status"} <= set(found)
    assert {f"{span.context.trace_id:032x}" for span in found.values()} == {TRACE}
    enqueued, ran, told = (
        found[name] for name in ("enqueue sample.add", "run sample.add", "answer status")
    )
    assert parent(enqueued) == 0x00F067AA0BA902B7
    assert parent(ran) == parent(told) == enqueued.context.span_id
    assert ran.attributes is not None and told.attributes is not None
    assert ran.attributes["messaging.message.id"] == task_id
    assert (ran.attributes["asyncpoll.attempt"], ran.attributes["asyncpoll.outcome"]) == (
        1,
        "SUCCESS",
    )
    assert told.attributes["asyncpoll.outcome"] == "TERMINAL"
    assert told.start_time is not None and told.end_time is not None and ran.end_time is not None
    assert told.start_time < ran.end_time < told.end_time, "it was held, and answered after"


@pytest.mark.parametrize("task", [sample_tasks.span, sample_tasks.aspan])
async def test_what_a_task_does_is_within_its_span(
    service: Any, spans: InMemorySpanExporter, task: Any
) -> None:
    """Of functions in threads and of coroutines; nothing is left of one for the next."""
    around: list[bool] = []

    def look(event: str, facts: dict[str, Any]) -> None:
        if event == "task.claimed":
            around.append(trace.get_current_span().get_span_context().is_valid)

    unsubscribe = events.subscribe(look)
    async with working():
        current = [(await run_one(task)).result for _ in range(2)]
    unsubscribe()
    ran = [span for span in spans.get_finished_spans() if span.name.startswith("run ")]
    assert current == [f'"{span.context.span_id:016x}"' for span in ran]
    assert len({span.context.trace_id for span in ran}) == 2
    assert not tracing._running
    assert around == [False, False], "the worker itself is in no span of an attempt"


async def test_an_attempt_that_fails_is_an_error(service: Any, spans: InMemorySpanExporter) -> None:
    """With its type, and without a traceback."""
    async with working():
        await run_one(sample_tasks.picky, "ValueError")
    ran = by_name(spans)["run sample.picky"]
    assert ran.status.status_code is trace.StatusCode.ERROR
    assert ran.attributes is not None
    assert ran.attributes["error.type"] == "ValueError"


async def test_every_attempt_is_in_the_same_trace(
    service: Any, spans: InMemorySpanExporter
) -> None:
    """One that failed and its retry, both within the span that enqueued."""
    async with working():
        await run_one(sample_tasks.picky, "ConnectionError")
    enqueued = by_name(spans)["enqueue sample.picky"]
    ran = [span for span in spans.get_finished_spans() if span.name == "run sample.picky"]
    assert [(span.attributes or {})["asyncpoll.attempt"] for span in ran] == [1, 2]
    assert {span.context.trace_id for span in ran} == {enqueued.context.trace_id}
    assert {parent(span) for span in ran} == {enqueued.context.span_id}


async def test_what_a_request_enqueues_is_in_its_trace(
    client: httpx.AsyncClient, service: Any, spans: InMemorySpanExporter
) -> None:
    """By a project's own instrumentation, which goes before the header; an answer is linked with the request that got it."""
    project = traces.provide().get_tracer("project")
    async with working():
        with project.start_as_current_span("handle order") as order:
            handle = await sample_tasks.add.aenqueue(1)
            body = {"task": "sample.add", "args": [1]}
            await client.post(f"{API}/tasks", json=body, headers={"traceparent": CALLER})
        with project.start_as_current_span("GET status") as asking:
            await client.get(f"{API}/tasks/{handle.id}/status?wait=true&timeout=20")
    found = spans.get_finished_spans()
    enqueued = [span for span in found if span.name == "enqueue sample.add"]
    assert [parent(span) for span in enqueued] == [order.get_span_context().span_id] * 2
    [told] = [span for span in found if span.name == "answer status"]
    assert told.context.trace_id == order.get_span_context().trace_id
    assert [link.context for link in told.links] == [asking.get_span_context()]


async def test_an_executor_outside_gets_the_context_and_its_end_is_in_the_trace(
    service: Any, spans: InMemorySpanExporter
) -> None:
    """What it does with it is its own affair."""
    async with executing() as executor:
        body = {"task": "sample.anything"}
        made = await executor.post("/tasks", body, headers={"traceparent": CALLER})
        url = f"{API}/tasks/{made.json()['task_id']}/status?wait=true&timeout=20"
        held = asyncio.ensure_future(executor._client.get(url))
        claimed = await executor.claim_one()
        await aeventually(lambda: admission.held == 1)
        await executor.stepped(claimed, status="SUCCESS")
        assert (await held).json()["outcome"] == "TERMINAL"
    enqueued, told = by_name(spans)["enqueue sample.anything"], by_name(spans)["answer status"]
    sent = f"00-{TRACE}-{enqueued.context.span_id:016x}-{enqueued.context.trace_flags:02x}"
    assert claimed["trace_context"] == {"traceparent": sent}
    assert f"{told.context.trace_id:032x}" == TRACE
    assert parent(told) == enqueued.context.span_id


async def test_a_caller_that_samples_nothing_is_heeded(
    client: httpx.AsyncClient, service: Any, spans: InMemorySpanExporter
) -> None:
    """No span is exported anywhere; the context travels on, and says so to whoever comes later."""
    headers = {"traceparent": f"{CALLER[:-2]}00", "tracestate": "vendor=kept"}
    async with working():
        body = {"task": "sample.add", "args": [1]}
        made = await client.post(f"{API}/tasks", json=body, headers=headers)
        task_id = made.json()["task_id"]
        await client.get(f"{API}/tasks/{task_id}/status?wait=true&timeout=20")
    assert spans.get_finished_spans() == ()
    context = (await Task.objects.aget(pk=task_id)).trace_context
    version, trace_id, _, flags = context["traceparent"].split("-")
    assert (version, trace_id, flags) == ("00", TRACE, "00")
    assert context["tracestate"] == "vendor=kept"


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": "garbage"},
        {"traceparent": ""},
        {"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"},
        {"traceparent": f"ff-{TRACE}-00f067aa0ba902b7-01"},
        {"traceparent": CALLER.upper().replace("B", "x")},
        {"traceparent": f"{CALLER}-{'9' * 5_000}"},
        {"tracestate": "vendor=alone", "baggage": "user=ann"},
    ],
)
async def test_a_header_that_is_no_context_begins_a_trace_of_its_own(
    client: httpx.AsyncClient, service: Any, spans: InMemorySpanExporter, headers: dict[str, str]
) -> None:
    """The task is made all the same, and nothing of the header is kept."""
    body = {"task": "sample.add", "args": [1]}
    made = await client.post(f"{API}/tasks", json=body, headers=headers)
    assert made.status_code == 202
    [enqueued] = spans.get_finished_spans()
    assert enqueued.parent is None
    context = (await Task.objects.aget(pk=made.json()["task_id"])).trace_context
    sent = f"00-{enqueued.context.trace_id:032x}-{enqueued.context.span_id:016x}-{enqueued.context.trace_flags:02x}"
    assert context == {"traceparent": sent}


async def test_a_state_that_is_too_long_is_not_kept(
    client: httpx.AsyncClient, service: Any, spans: InMemorySpanExporter
) -> None:
    """The standard asks for 512 characters; a row is no place for more of somebody else's."""
    state = ",".join(f"vendor{number}={'x' * 200}" for number in range(5))
    body = {"task": "sample.add", "args": [1]}
    headers = {"traceparent": CALLER, "tracestate": state}
    made = await client.post(f"{API}/tasks", json=body, headers=headers)
    context = (await Task.objects.aget(pk=made.json()["task_id"])).trace_context
    assert TRACE in context["traceparent"] and "tracestate" not in context


async def test_without_a_provider_nothing_travels(client: httpx.AsyncClient, service: Any) -> None:
    """It is installed, and nobody set it up: rows stay as they were."""
    body = {"task": "sample.add", "args": [1, 2]}
    made = await client.post(f"{API}/tasks", json=body, headers={"traceparent": CALLER})
    assert made.status_code == 202
    row = await Task.objects.aget(pk=made.json()["task_id"])
    assert row.trace_context is None

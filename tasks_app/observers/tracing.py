"""Events as spans: the attempts at a task, and the answers that told of it, in the trace that its submission was in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from tasks_app import traces
from tasks_app.events import subscribe_once

if traces.AVAILABLE:
    from opentelemetry import context as otel_context
    from opentelemetry import trace

_running: dict[tuple[UUID, int], Any] = {}


def install() -> Callable[[], None]:
    """Make spans from now on, once per process, where OpenTelemetry is installed. Gives the function that ends it."""
    return subscribe_once(_trace) if traces.AVAILABLE else lambda: None


def _trace(event: str, facts: dict[str, Any]) -> None:
    handler = _HANDLERS.get(event)
    spans = None if handler is None else traces.tracer()
    if handler is not None and spans is not None:
        handler(spans, facts)


def _started(spans: Any, facts: dict[str, Any]) -> None:
    """An attempt began: what its function does from here on is done within its span."""
    before = traces.parent(facts["trace_context"])
    span = spans.start_span(
        f"run {facts['name']}",
        context=before,
        kind=trace.SpanKind.CONSUMER,
        attributes={
            **traces.attributes(facts["id"], facts["name"], facts["queue"]),
            "asyncpoll.attempt": facts["attempt"],
        },
    )
    _running[facts["id"], facts["attempt"]] = span
    # Whoever emits this runs the attempt in a context that is for it alone.
    otel_context.attach(trace.set_span_in_context(span, before))


def _finished(spans: Any, facts: dict[str, Any]) -> None:
    span = _running.pop((facts["id"], facts["attempt"]), None)
    if span is None:
        return
    span.set_attribute("asyncpoll.outcome", facts["status"] or "LOST")
    span.set_attribute("asyncpoll.queue_wait_ms", facts["queue_wait_ms"])
    if facts["error_type"]:
        span.set_attribute("error.type", facts["error_type"])
        span.set_status(trace.StatusCode.ERROR, facts["error_message"])
    span.end()


def _answered(spans: Any, facts: dict[str, Any]) -> None:
    """A request was held and told of tasks: a span in the trace of each, linked with the request's own."""
    if not facts.get("told"):
        return
    request = trace.get_current_span().get_span_context()
    ended = time.time_ns()
    for task_id, name, queue, trace_context in facts["told"]:
        span = spans.start_span(
            f"answer {facts['route']}",
            context=traces.parent(trace_context),
            start_time=ended - int(facts["held_seconds"] * 1e9),
            links=[trace.Link(request)] if request.is_valid else [],
            attributes={
                **traces.attributes(task_id, name, queue),
                "asyncpoll.outcome": str(facts["outcome"]),
                "asyncpoll.cause": str(facts["cause"]),
            },
        )
        span.end(ended)


_HANDLERS: Final[Mapping[str, Callable[[Any, dict[str, Any]], None]]] = MappingProxyType(
    {"task.started": _started, "task.finished": _finished, "hold.answered": _answered}
)

"""OpenTelemetry, where it is installed and set up: the W3C trace context that travels with a task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

try:
    from opentelemetry import context as otel_context
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True

_NAME: Final = "asyncpoll"
# So much everybody has to pass on, by the standard. Callers may send more, and it would be kept for as long as the task.
_LONGEST_STATE: Final = 512


def tracer() -> Any:
    """Makes our spans; None while nobody would get them."""
    if not AVAILABLE:
        return None
    provider = provide()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider.get_tracer(_NAME)


def provide() -> Any:
    """What the project set up; a proxy where it did not."""
    return trace.get_tracer_provider()


def carried(task_id: UUID, name: str, queue: str) -> str | None:
    """The context that a new task takes along, as JSON text: that of a span of its own in the trace that is current
    here. None without OpenTelemetry."""
    spans = tracer()
    if spans is None:
        return None
    span = spans.start_span(
        f"enqueue {name}", kind=trace.SpanKind.PRODUCER, attributes=attributes(task_id, name, queue)
    )
    carrier: dict[str, str] = {}
    # W3C's alone: baggage, which may hold anything, is not for a row that others read.
    TraceContextTextMapPropagator().inject(carrier, trace.set_span_in_context(span))
    span.end()
    if len(carrier.get("tracestate", "")) > _LONGEST_STATE:
        del carrier["tracestate"]
    return json.dumps(carrier) if carrier else None


def parent(carrier: str | None) -> Any:
    """The context that came along with a task; an empty one where none did."""
    return _extracted(json.loads(carrier) if carrier else {})


@contextmanager
def following(headers: Mapping[str, str]) -> Iterator[None]:
    """Within it, what a request's `traceparent` says is current, unless the project's own instrumentation said so."""
    if tracer() is None or trace.get_current_span().get_span_context().is_valid:
        yield
        return
    token = otel_context.attach(_extracted({name.lower(): each for name, each in headers.items()}))
    try:
        yield
    finally:
        otel_context.detach(token)


def attributes(task_id: UUID, name: str, queue: str) -> dict[str, str]:
    """Of a span about a task, by OpenTelemetry's conventions for messaging."""
    return {
        "messaging.system": _NAME,
        "messaging.destination.name": queue,
        "messaging.message.id": str(task_id),
        "asyncpoll.task": name,
    }


def _extracted(carrier: Any) -> Any:
    found = carrier if isinstance(carrier, dict) else {}
    texts = {name: each for name, each in found.items() if isinstance(each, str)}
    return TraceContextTextMapPropagator().extract(texts, otel_context.Context())

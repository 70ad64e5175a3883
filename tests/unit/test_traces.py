"""OpenTelemetry is optional, and what comes along with a task is not trusted."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry import trace

from tasks_app import traces

WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
from tasks_app import traces
from tasks_app.observers import tracing
assert not traces.AVAILABLE
assert traces.tracer() is None and traces.carried(None, "a", "b") is None
with traces.following({"traceparent": "x"}):
    tracing.install()()
"""


def test_nothing_needs_it() -> None:
    """Where it is not installed there are no spans, and no error."""
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, timeout=60)


@pytest.mark.parametrize(
    "carrier", [None, "null", "[1]", "{}", '{"traceparent": 7}', '{"traceparent": "00-xyz-1-01"}']
)
def test_a_context_that_is_none_begins_a_trace_of_its_own(carrier: str | None) -> None:
    """Whoever may submit could have sent it."""
    current = trace.get_current_span(traces.parent(carrier)).get_span_context()
    assert not current.is_valid

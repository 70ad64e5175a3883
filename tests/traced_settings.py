"""The tests' settings, in a project that has set up OpenTelemetry: spans go to the file that SPANS names, a line each."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from tests.settings import *  # noqa: F403

_exporter = ConsoleSpanExporter(
    out=Path(os.environ["SPANS"]).open("a", encoding="utf-8"),  # noqa: SIM115
    formatter=lambda span: f"{span.to_json(indent=None)}\n",
)
_provider = TracerProvider()
_provider.add_span_processor(SimpleSpanProcessor(_exporter))
trace.set_tracer_provider(_provider)

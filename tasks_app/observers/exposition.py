"""Everything that a process has to say to Prometheus, in its text format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

from prometheus_client import generate_latest, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tasks_app.errors import ConfigurationError
from tasks_app.observers.metrics import REGISTRY

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LOOPBACK = "127.0.0.1"


class State(Protocol):
    """What is so now."""

    def collect(self) -> Iterable[Metric]:
        """As metrics."""


class Exposition(Collector):
    """Counters of this process and states asked for at that moment; every sample says which process it is of."""

    def __init__(self, states: Callable[[], Sequence[State]]) -> None:
        self._states = states

    def collect(self) -> Iterator[Metric]:
        """All of it."""
        for state in (REGISTRY, *self._states()):
            for metric in state.collect():
                yield _of_this_process(metric)


def exposition(states: Sequence[State]) -> bytes:
    """The text of a scrape."""
    return generate_latest(Exposition(lambda: states))


def merged(texts: Iterable[str]) -> str:
    """Several scrapes as one. Each has its own `process`; of a family that several have there is one, as the format wants."""
    heads: dict[str, str] = {}
    samples: dict[str, list[str]] = {}
    for text in texts:
        # No label's value has an end of line in it.
        for family in f"\n{text}".split("\n# HELP ")[1:]:
            described, kind, *lines = family.rstrip("\n").split("\n")
            name = described.partition(" ")[0]
            heads.setdefault(name, f"# HELP {described}\n{kind}")
            samples.setdefault(name, []).extend(lines)
    return "".join("\n".join([head, *samples[name]]) + "\n" for name, head in heads.items())


def serve_metrics(port: int, states: Callable[[], Sequence[State]]) -> None:
    """Answer scrapes on this port of the loopback interface, from a thread that ends with the process.

    For processes that serve nothing else. Raises ConfigurationError if the port is taken.
    """
    try:
        start_http_server(port, _LOOPBACK, Exposition(states))
    except OSError as error:
        raise ConfigurationError(
            f"Metrics can't be served on port {port} of {_LOOPBACK} ({error.strerror}); choose another port."
        ) from error


def _of_this_process(metric: Metric) -> Metric:
    """Several processes may share an address, and each answers for itself. When a series began is left out."""
    labelled = Metric(metric.name, metric.documentation, metric.type, metric.unit)
    process = str(os.getpid())
    for sample in metric.samples:
        if not sample.name.endswith("_created"):
            labels = {**sample.labels, "process": process}
            labelled.add_sample(sample.name, labels, sample.value)
    return labelled

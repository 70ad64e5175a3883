"""Scrapes as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families


def listed_name(family: Metric) -> str:
    """As people write it."""
    return f"{family.name}_total" if family.type == "counter" else family.name


class Scrape:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        families = list(text_string_to_metric_families(text))
        self.families = {listed_name(family) for family in families}
        """All that the scrape describes, also those that nothing was counted of yet."""
        self.samples = [sample for family in families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name with these labels among theirs; 0 if there is none."""
        return sum(
            sample.value
            for sample in self.samples
            if sample.name == f"asyncpoll_{name}" and labels.items() <= sample.labels.items()
        )

    def has(self, name: str) -> bool:
        """Is there any sample of that name?"""
        return any(sample.name == f"asyncpoll_{name}" for sample in self.samples)


def growth(scrape: Callable[[], Scrape]) -> Callable[..., float]:
    """How much a sample has grown from now on, to the nanosecond: what other tests have added to a sum of seconds leaves
    its traces in the last digits of a difference."""
    before = scrape()
    return lambda name, **labels: round(
        scrape().value(name, **labels) - before.value(name, **labels), 9
    )

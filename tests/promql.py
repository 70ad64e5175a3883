"""PromQL as Prometheus parses it, held against the series that there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import promql_parser
from prometheus_client.parser import text_string_to_metric_families

from tests.scraping import listed_name

# What Prometheus itself adds to each series that it scrapes.
SCRAPED = frozenset({"job", "instance"})
_RATES = frozenset({"rate", "increase"})


@dataclass(frozen=True, slots=True)
class Series:
    """A name that a scrape has: its labels, and whether it only grows."""

    labels: frozenset[str]
    grows: bool
    family: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A selector in an expression: its labels, those it is grouped by, and the functions around it, the inmost last."""

    name: str
    labels: frozenset[str]
    grouped: frozenset[str]
    within: tuple[str, ...]
    is_range: bool

    def problems(self, series: Mapping[str, Series]) -> Iterator[str]:
        """Whatever would give nothing, or nonsense."""
        there = series.get(self.name)
        if there is None:
            yield f"there is no {self.name}"
            return
        for label in sorted((self.labels | self.grouped) - there.labels - SCRAPED):
            yield f"{self.name} has no label {label!r}"
        rated = self.is_range and bool(self.within) and self.within[-1] in _RATES
        if rated is not there.grows:
            yield f"{self.name} {'needs' if there.grows else 'is a gauge and takes no'} rate()"
        if self.name.endswith("_bucket") and not (
            "le" in self.grouped and "histogram_quantile" in self.within
        ):
            yield f"{self.name} belongs into histogram_quantile(… by (le) …)"


def series_of(text: str) -> dict[str, Series]:
    """What a scrape offers, by name."""
    return {
        sample.name: Series(
            frozenset(sample.labels), family.type in ("counter", "histogram"), listed_name(family)
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def asked(expression: str) -> list[Asked]:
    """Every selector of an expression. Raises ValueError for what is no PromQL."""
    return list(_asked(promql_parser.parse(expression)))


def labels_left(expression: str, series: Mapping[str, Series]) -> frozenset[str]:
    """Those that the result of an expression has, for a legend to name."""
    return _left(promql_parser.parse(expression), series)


def _asked(node: Any) -> Iterator[Asked]:
    match node:
        case promql_parser.VectorSelector():
            yield Asked(node.name, _matched(node), frozenset(), (), is_range=False)
        case promql_parser.MatrixSelector():
            selector = node.vector_selector
            yield Asked(selector.name, _matched(selector), frozenset(), (), is_range=True)
        case promql_parser.Call():
            for each in _of_all(node.args):
                yield replace(each, within=(node.func.name, *each.within))
        case promql_parser.AggregateExpr():
            for each in _asked(node.expr):
                yield replace(each, grouped=each.grouped | _by(node))
        case promql_parser.BinaryExpr():
            yield from _of_all([node.lhs, node.rhs])
        case promql_parser.ParenExpr():
            yield from _asked(node.expr)


def _of_all(nodes: Iterable[Any]) -> Iterator[Asked]:
    for node in nodes:
        yield from _asked(node)


def _left(node: Any, series: Mapping[str, Series]) -> frozenset[str]:
    match node:
        case promql_parser.VectorSelector():
            return series[node.name].labels | SCRAPED
        case promql_parser.MatrixSelector():
            return series[node.vector_selector.name].labels | SCRAPED
        case promql_parser.AggregateExpr():
            return _by(node)
        case promql_parser.Call():
            return _left(node.args[-1], series) - (
                {"le"} if node.func.name == "histogram_quantile" else frozenset()
            )
        case promql_parser.BinaryExpr():
            return _left(node.lhs, series)
        case _:
            return _left(node.expr, series)


def _matched(selector: Any) -> frozenset[str]:
    return frozenset(matcher.name for matcher in selector.matchers.matchers)


def _by(node: Any) -> frozenset[str]:
    modifier = node.modifier
    if modifier is None:
        return frozenset()
    assert modifier.type == promql_parser.AggModifierType.By, "without() keeps labels unseen"
    return frozenset(modifier.labels)

"""What is written about metrics, for people and for Grafana, is what a scrape has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tasks_app.observers import metrics
from tests.every_metric import emit_all, scrape_text
from tests.promql import Series, asked, labels_left, series_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "metrics.md").read_text()
DASHBOARD = json.loads((DOCS / "operations" / "grafana-dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
ALERTS = re.findall(r"^\| `(.+?)`(?: for \d+ min)? \| \S", PAGE, re.MULTILINE)
ALERTS = [expression for expression in ALERTS if "(" in expression]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_UNITS = {"s", "short", "ops", "reqps"}


@pytest.fixture
def series() -> Iterator[dict[str, Series]]:
    """What a scrape has in which everything has happened once."""
    end = metrics.install()
    emit_all()
    yield series_of(scrape_text())
    end()


def targets(panel: dict[str, Any]) -> list[dict[str, Any]]:
    """The queries of a panel, as Grafana sends them."""
    return [
        {**target, "expr": target["expr"].replace("$__rate_interval", "1m")}
        for target in panel["targets"]
    ]


def unit_of(expression: str) -> str:
    """What an expression counts in: seconds, things a second, or things."""
    names = [each.name for each in asked(expression)]
    if "/" in expression:
        return "s" if "_seconds" in names[0] else "short"
    if names[0].endswith("_total"):
        return "a second"
    return "s" if "_seconds" in names[0] else "short"


def test_the_page_lists_every_metric_with_its_labels(series: dict[str, Series]) -> None:
    """And no other."""
    rows = re.findall(r"^\| `(asyncpoll_\w+)` \| (\w+)((?:, `\w+`)*) \|", PAGE, re.MULTILINE)
    listed = {name: frozenset(re.findall(r"`(\w+)`", labels)) for name, _, labels in rows}
    assert len(listed) == len(rows)
    assert listed == {each.family: each.labels - {"le", "process"} for each in series.values()}
    grow = {each.family for each in series.values() if each.grows}
    assert grow == {name for name, kind, _ in rows if kind in ("counter", "histogram")}


def test_the_dashboard_shows_every_metric(series: dict[str, Series]) -> None:
    """What nobody looks at need not be counted."""
    names = {
        each.name for panel in PANELS for query in targets(panel) for each in asked(query["expr"])
    }
    assert {series[name].family for name in names} == {each.family for each in series.values()}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_asks_for_what_a_scrape_has(
    panel: dict[str, Any], series: dict[str, Series]
) -> None:
    """Names, labels, rates of what grows and buckets by `le`; its legends name labels that are left, its unit fits."""
    for query in targets(panel):
        for each in asked(query["expr"]):
            assert not list(each.problems(series))
            assert "job" in each.labels, "the variable chooses"
        named = set(re.findall(r"\{\{(\w+)\}\}", query["legendFormat"]))
        assert named <= labels_left(query["expr"], series)
    units = {unit_of(query["expr"]) for query in targets(panel)}
    unit = panel["fieldConfig"]["defaults"]["unit"]
    assert units == {"a second" if unit in ("ops", "reqps") else unit}


@pytest.mark.parametrize("expression", ALERTS)
def test_an_alert_asks_for_what_a_scrape_has(expression: str, series: dict[str, Series]) -> None:
    """One that asks for nothing never fires, and nobody notices."""
    for each in asked(expression):
        assert not list(each.problems(series))


def test_there_are_alerts() -> None:
    """The table was found."""
    assert len(ALERTS) >= 6


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    """Its data source is asked for, panels have ids of their own and don't lie on each other, variables are there."""
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    assert variables["job"]["datasource"] == SOURCE
    used = re.findall(r"\$\{?(\w+)\}?", json.dumps(DASHBOARD["panels"]))
    assert set(used) == {"datasource", "job", "__rate_interval"}
    every = DASHBOARD["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    for panel in PANELS:
        assert panel["datasource"] == SOURCE
        assert panel["fieldConfig"]["defaults"]["unit"] in _UNITS
        refs = [target["refId"] for target in panel["targets"]]
        assert refs and len(set(refs)) == len(refs)
        assert all(target["datasource"] == SOURCE for target in panel["targets"])
    for one, other in combinations(every, 2):
        assert not _overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("asyncpoll_hold", "there is no asyncpoll_hold"),
        ("sum by (outcome) (asyncpoll_held)", "asyncpoll_held has no label 'outcome'"),
        ('asyncpoll_held{queue="a"}', "asyncpoll_held has no label 'queue'"),
        ("sum(asyncpoll_tasks_fenced_total)", "asyncpoll_tasks_fenced_total needs rate()"),
        ("rate(asyncpoll_held[5m])", "asyncpoll_held is a gauge and takes no rate()"),
        (
            "sum by (le) (rate(asyncpoll_hold_seconds_bucket[5m]))",
            "asyncpoll_hold_seconds_bucket belongs into histogram_quantile(… by (le) …)",
        ),
    ],
)
def test_nonsense_is_found(expression: str, problem: str, series: dict[str, Series]) -> None:
    """These checks can fail."""
    assert [found for each in asked(expression) for found in each.problems(series)] == [problem]


def test_what_is_no_promql_is_found() -> None:
    """Prometheus would say so, when it is too late."""
    for wrong in ("sum by (route asyncpoll_held)", "rate(asyncpoll_tasks_fenced_total)"):
        with pytest.raises(ValueError):
            asked(wrong)

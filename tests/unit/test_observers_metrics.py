"""Events as metrics."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from prometheus_client import Histogram

from asyncpoll.contract import Outcome
from tasks_app.events import emit
from tasks_app.observers import metrics
from tasks_app.observers.waits import Tally
from tasks_app.wakeup.reader import Cause
from tests.every_metric import EVENTS, HELD, emit_all, scraped
from tests.scraping import growth

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def counting():
    """Whatever is emitted is counted."""
    end = metrics.install()
    yield
    end()


@pytest.fixture
def grown(counting):
    """How much a sample has grown since the test began."""
    return growth(scraped)


def test_every_event_counts(grown):
    """Under the name that its verb has."""
    emit_all()
    counted = {
        "holds_answered_total": 2,
        "hold_seconds_sum": 3,
        "tasks_claimed_total": 3,
        "changes_committed_total": 2,
        "tasks_fenced_total": 1,
        "tasks_rescued_total": 1,
        "tasks_retried_total": 1,
        "attempts_finished_total": 3,
        "attempt_seconds_sum": 4.5,
        "queue_wait_seconds_sum": 0,
        "commits_retried_total": 1,
        "heartbeats_failed_total": 1,
        "leases_lost_total": 1,
        "link_losses_total": 1,
        "layer_rejoins_total": 1,
        "listener_connects_total": 1,
        "bridge_elections_total": 1,
        "loop_failures_total": 1,
        "inbox_entries_total": 4,
        "deliveries_sent_total": 1,
        "deliveries_failed_total": 2,
        "deliveries_abandoned_total": 1,
        "delivery_attempt_seconds_sum": 1.5,
        "delivery_owed_seconds_sum": 3,
    }
    assert {name: grown(name) for name in counted} == counted
    assert [grown("batch_size_sum", verb=verb) for verb in ("claim", "commit", "read")] == [3, 2, 9]
    assert grown("attempts_finished_total", task="demo.task", status="RELEASED") == 1
    assert grown("holds_answered_total", route="status", outcome="CHANGED") == 1


def test_every_event_that_is_counted_is_emitted_somewhere():
    """A name that nobody says any more would count nothing, and nobody would notice."""
    assert {event for event, _ in EVENTS} == set(metrics.HANDLERS)
    sources = "".join(path.read_text() for path in (ROOT / "tasks_app").rglob("*.py"))
    emitted = set(re.findall(r'emit\(\s*"([a-z_.]+)"', sources))
    assert set(metrics.HANDLERS) <= emitted


@pytest.mark.parametrize(
    ("outcome", "cause", "ended_ago", "expected"),
    [
        (Outcome.TERMINAL, Cause.HINT, 0.5, 0.5),
        (Outcome.TERMINAL, Cause.SWEEP, 0.5, 0.5),
        (Outcome.TERMINAL, Cause.HINT, 60.0, 2.0),
        (Outcome.TERMINAL, Cause.HINT, -60.0, 0.0),
        (Outcome.TERMINAL, Cause.FIRST, 0.5, None),
        (Outcome.CHANGED, Cause.HINT, 0.5, None),
    ],
)
def test_wake_latency_is_of_who_was_woken_by_an_end(
    grown, monkeypatch, outcome, cause, ended_ago, expected
):
    """At most as long as the wait, at least nothing; by the database's clock, ten seconds ahead of ours here."""
    monkeypatch.setattr(metrics.WAITS, "ahead_seconds", 10.0)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr("time.time", lambda: now.timestamp() - 10.0)
    finished_at = now - timedelta(seconds=ended_ago)
    emit(
        "hold.answered", **{**HELD, "outcome": outcome, "cause": cause, "finished_at": finished_at}
    )
    assert grown("wake_latency_seconds_count") == (expected is not None)
    assert grown("wake_latency_seconds_sum") == pytest.approx(expected or 0.0)


def test_wake_latency_is_not_guessed(grown, monkeypatch):
    """Before anybody has compared the clocks there is nothing to say."""
    monkeypatch.setattr(metrics.WAITS, "ahead_seconds", None)
    facts = {**HELD, "outcome": Outcome.TERMINAL, "finished_at": datetime.now(UTC)}
    emit("hold.answered", **facts)
    assert grown("wake_latency_seconds_count") == 0
    assert grown("holds_answered_total") == 1


def test_a_tally_has_the_buckets_that_the_library_would_have():
    """Values on a bound, between two, and beyond the last."""
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 2.0001, 99.0]
    library, tally = Histogram("seconds", "", buckets=(1, 2, 5), registry=None), Tally((1, 2, 5))
    for value in values:
        library.observe(value)
        tally.add(value)
    samples = next(iter(library.collect())).samples
    expected = [(each.labels["le"], each.value) for each in samples if "le" in each.labels]
    assert tally.buckets == expected
    assert (tally.count, tally.sum) == (len(values), sum(values))


def test_installing_twice_counts_once(grown):
    """Whoever comes second is no second observer."""
    metrics.install()
    emit("task.fenced", id=UUID(int=1))
    assert grown("tasks_fenced_total") == 1


def test_states_are_told_as_they_are():
    """Gauges by name and label."""
    scrape = scraped()
    assert scrape.value("held", route="status") == 2
    assert [scrape.value("link_up"), scrape.value("layer_up")] == [1, 0]
    assert [scrape.value("bridge"), scrape.value("bridge", part="leader")] == [1, 1]
    assert [scrape.value("pool_connections", state=state) for state in ("used", "idle")] == [2, 1]
    assert scrape.value("pool_wait_seconds_total") == 1.5
    assert scrape.value("queue_age_seconds", queue="red") == 1.5
    assert scrape.value("event_loop_lag_seconds") == 0.5
    assert scrape.value("event_loop_tasks") == 7

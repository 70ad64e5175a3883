"""What has to be true of every task once it is over, whatever happened to workers and database meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from tests.acceptance.workers import Queue
from tests.support import eventually

_UNFINISHED = "SELECT 1 FROM tasks_app_task WHERE finished_at IS NULL LIMIT 1"
_ENDS_AS = {"succeeded": "SUCCESS", "failed": "FAILED", "cancelled": "CANCELLED"}
_ENDS_OF_ATTEMPTS = {"rescued", "retried", "released", *_ENDS_AS}
_FAILURES = {"rescued", "retried", "failed"}


@dataclass(frozen=True, slots=True)
class Story:
    """A task's row, its history as (version, kind, attempt) in order, and the attempt of each run that left its effect."""

    status: str
    version: int
    attempt: int
    failures: int
    result: Any
    history: tuple[tuple[int, str, int], ...]
    effects: tuple[int, ...]


def assert_consistent(
    queue: Queue,
    results: Mapping[UUID, Any],
    failing: Collection[UUID] = (),
    within: float = 60.0,
) -> None:
    """Exactly these tasks are there; `within` so many seconds each succeeds with its result or, if it is `failing`,
    fails; nothing happened twice, and nothing is missing."""
    # What is not over by then is among the faults.
    with psycopg.connect(queue.url, autocommit=True) as connection, suppress(AssertionError):
        eventually(lambda: not connection.execute(_UNFINISHED).fetchall(), within)
    stories = _stories(queue)
    assert stories.keys() == {*results, *failing}
    faults = []
    for task_id, story in stories.items():
        wanted = ("FAILED", None) if task_id in failing else ("SUCCESS", results[task_id])
        if (story.status, story.result) != wanted:
            faults.append(f"{task_id} is {story.status} with {story.result!r} instead of {wanted}")
        faults += [f"{task_id} {fault}: {story}" for fault in faults_of(story)]
    assert not faults, "\n".join([f"{len(faults)} faults", *faults[:10]])


def faults_of(story: Story) -> Iterator[str]:
    """What contradicts itself in a story that is over. Its task reports at most once in an attempt."""
    versions = [version for version, _, _ in story.history]
    if versions != list(range(1, story.version + 1)):
        yield f"has the versions {versions} instead of 1 to {story.version}"
    for (kind, attempt), times in Counter(event[1:] for event in story.history).items():
        if times > 1:
            yield f"says {kind} of attempt {attempt} {times} times"
    yield from _faults_of_history(story)
    for attempt, runs in Counter(story.effects).items():
        if runs > 1:
            yield f"ran attempt {attempt} {runs} times"
        if not 1 <= attempt <= story.attempt:
            yield f"has an effect of attempt {attempt}, which it never had"
    if story.status == "SUCCESS" and story.attempt not in story.effects:
        yield f"has no effect of attempt {story.attempt}, which counts"


def _faults_of_history(story: Story) -> Iterator[str]:
    last, running, failures, end = 0, 0, 0, ""
    for version, kind, attempt in story.history[1:]:
        if end:
            yield f"went on after its end with {kind} at version {version}"
        if kind == "started":
            if running or attempt != last + 1:
                yield f"started attempt {attempt} after {last}, while {running or 'none'} ran"
            last = running = attempt
            continue
        if attempt != running:
            yield f"has {kind} of attempt {attempt} while {running or 'none'} ran"
        if kind in _ENDS_OF_ATTEMPTS:
            running, end = 0, _ENDS_AS.get(kind, "")
            failures += kind in _FAILURES
    if (end, last, failures) != (story.status, story.attempt, story.failures):
        yield f"has a history of {last} attempts and {failures} failures that ends {end or 'nowhere'}"


def _stories(queue: Queue) -> dict[UUID, Story]:
    rows = queue.ask(
        "SELECT id, status, version, attempt, failures, result, "
        "ARRAY(SELECT format('%%s %%s %%s', version, kind, attempt) FROM tasks_app_taskevent e "
        "WHERE e.task_id = t.id ORDER BY version), "
        "ARRAY(SELECT attempt FROM effect WHERE effect.task_id = t.id ORDER BY attempt) "
        "FROM tasks_app_task t"
    )
    return {
        task_id: Story(*facts, tuple(_event(line) for line in history), tuple(effects))
        for task_id, *facts, history, effects in rows
    }


def _event(line: str) -> tuple[int, str, int]:
    version, kind, attempt = line.split()
    return int(version), kind, int(attempt)

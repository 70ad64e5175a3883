"""Tasks without a function here: their arguments, their queue, and who is kept away from it."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from tasks_app import catalogue, queues
from tasks_app.errors import InvalidArguments, InvalidTask, NotJson
from tasks_app.external import external_task
from tasks_app.tasks import task
from tests.external_tasks import QUEUE, anything, render


@pytest.fixture(autouse=True)
def _only_for_this_test(monkeypatch):
    monkeypatch.setattr(catalogue, "_tasks", dict(catalogue._tasks))
    monkeypatch.setattr(queues, "_outside", dict(queues._outside))


def test_arguments_that_fit_the_schema_are_stored_as_they_are():
    """Nothing is added."""
    new = render.prepare([], {"pages": ["a.html"], "dpi": 300})
    assert (new.name, new.queue, new.args) == ("sample.render", QUEUE, "[]")
    assert new.kwargs == '{"pages":["a.html"],"dpi":300}'


@pytest.mark.parametrize(
    ("kwargs", "reason"),
    [
        ({}, "'pages' is a required property in its arguments."),
        ({"pages": []}, "at $.pages of its arguments"),
        ({"pages": ["a"], "dpi": "x"}, "'x' is not of type 'integer' at $.dpi"),
        ({"pages": ["a"], "color": 1}, "'color' was unexpected"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_reason(kwargs, reason):
    """At submit, not when somebody has claimed them."""
    with pytest.raises(InvalidArguments) as raised:
        render.prepare([], kwargs)
    assert "sample.render" in str(raised.value)
    assert reason in str(raised.value)


def test_a_schema_describes_keyword_arguments_only():
    """There is nothing to check positions against."""
    with pytest.raises(InvalidArguments, match="takes keyword arguments only"):
        render.prepare([1], {"pages": ["a"]})


def test_without_a_schema_any_json_is_taken_and_nothing_else():
    """Both kinds of arguments."""
    assert anything.prepare([1, None], {"deep": {"er": []}}).args == "[1,null]"
    with pytest.raises(NotJson):
        anything.prepare([float("nan")], {})


def test_a_tuple_is_checked_as_the_array_it_is_stored_as():
    """The schema speaks of JSON."""
    assert render.prepare([], {"pages": ("a", "b")}).kwargs == '{"pages":["a","b"]}'


def test_a_schema_that_is_none_is_refused_where_it_is_declared():
    """With the place."""
    with pytest.raises(InvalidTask, match=r"its schema is no JSON Schema: .* at \$\.type"):
        external_task("test.broken", {"type": "objekt"}, "q")


def test_a_reference_out_of_the_schema_is_never_fetched():
    """The network is nobody's to be asked for by a schema."""
    declared = external_task("test.ref", {"$ref": "http://127.0.0.1:9/schema"}, "q")
    with pytest.raises(InvalidArguments, match=r"refers to 'http://127.0.0.1:9/schema'"):
        declared.prepare([], {})


def test_arguments_nested_too_deeply_to_be_checked_are_refused():
    """A recursive schema follows the arguments as deep as they go, which JSON text may be well before."""
    schema = {"type": "object", "additionalProperties": {"$ref": "#"}}
    declared = external_task("test.tree", schema, "q")
    deep: dict[str, object] = {}
    for _ in range(400):
        deep = {"a": deep}
    with pytest.raises(InvalidArguments, match="too deeply"):
        declared.prepare([], deep)


def test_only_the_first_of_many_wrong_values_are_looked_at(monkeypatch):
    """Whoever sends half a million of them must not stop everybody else for seconds."""
    looked_at = []
    monkeypatch.setattr("tasks_app.jsonschemas.best_match", lambda errors: looked_at.extend(errors))
    schema = {"type": "object", "properties": {"pages": {"items": {"type": "string"}}}}
    external_task("test.wrong", schema, "q").prepare([], {"pages": [1] * 1_000})
    assert len(looked_at) == 20


def test_it_can_not_be_called_here():
    """With the remedy."""
    with pytest.raises(InvalidTask, match="let an executor claim it"):
        anything()


def test_its_queue_is_closed_to_tasks_with_a_function():
    """They would wait there for ever."""
    for options in ({"queue": QUEUE}, {"queue": "fine", "queues": (QUEUE,)}):
        with pytest.raises(InvalidTask, match="run outside this code base, by task 'sample"):
            task(name="test.ours", **options)(lambda: None)


def test_it_can_not_take_over_a_queue_that_workers_of_ours_serve():
    """Those would leave it alone from then on."""
    task(name="test.ours", queue="shared")(lambda: None)
    with pytest.raises(InvalidTask, match=r"'shared' is also the queue of 'test.ours'"):
        external_task("test.theirs", queue="shared")


def test_using_moves_it_between_external_queues_only():
    """Elsewhere nobody would run it."""
    external_task("test.theirs", queue="second")
    assert render.using(queue="second", owner="alice").queue == "second"
    with pytest.raises(InvalidTask, match="'default' is for workers of ours"):
        render.using(queue="default")


def test_runworker_refuses_an_external_queue():
    """Before it starts anything."""
    with pytest.raises(
        CommandError, match=f"--queues names '{QUEUE}', whose tasks are run outside"
    ):
        call_command("runworker", "--queues", f"default,{QUEUE}")

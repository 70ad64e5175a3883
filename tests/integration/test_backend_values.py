"""Tasks and results of Django's Tasks framework as values: pickled, copied, logged, of a class of the project's own."""

from __future__ import annotations

import copy
import logging
import pickle
import sys
from dataclasses import dataclass
from types import ModuleType

import django
import pytest
from twisted.persisted import (
    styles,
)  # replaces how methods are pickled, in every process that serves

from tasks_app.backend import TasksBackend
from tasks_app.compat import TaskResultStatus, task_backends
from tasks_app.errors import UnknownTask
from tasks_app.models import Task
from tasks_app.portable import PortableTask
from tasks_app.testing import run_pending
from tests import framework_tasks

pytestmark = pytest.mark.django_db
LOGGER = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedTask(PortableTask):
    """A project's own class of tasks."""

    price: int = 1


class PricedBackend(TasksBackend):
    """A project's own backend."""

    task_class = PricedTask


@pytest.fixture(autouse=True)
def tasks(settings):
    """TASKS with a backend of ours, and one that a project made of it."""
    assert styles
    settings.TASKS = {
        "default": {"BACKEND": "tasks_app.backend.TasksBackend", "QUEUES": []},
        "priced": {"BACKEND": f"{__name__}.PricedBackend"},
    }


@pytest.fixture
def module(monkeypatch):
    """A module that tasks can be declared in, for one test."""
    made = ModuleType("tests.declared_meanwhile")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def declare(module, name="function", **options):
    """A task at the module's level."""

    def function() -> int:
        return 5

    function.__module__, function.__qualname__ = module.__name__, name
    task = framework_tasks.task(**options)(function)
    setattr(module, name, task)
    return task


@pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_a_task_and_its_result_survive_being_copied(module, duplicate):
    """With what `using()` changed; the same in every process, whoever replaced how methods are pickled."""
    task = declare(module).using(priority=7, queue_name="reports")
    assert duplicate(task) == task
    result = task.enqueue()
    assert duplicate(result) == result
    run_pending()
    result.refresh()
    assert duplicate(result).return_value == 5


def test_a_pickled_task_whose_function_is_gone_says_so(module):
    """It names what can't be found."""
    pickled = pickle.dumps(declare(module, "removed"))
    del module.removed
    with pytest.raises(UnknownTask, match=r"tests\.declared_meanwhile\.removed can't be imported"):
        pickle.loads(pickled)


def test_a_project_may_have_a_class_of_tasks_of_its_own(module):
    """What it adds is on the task of a result as well, however one came by it."""
    task = declare(module, backend="priced", price=3)
    assert isinstance(task, PricedTask)
    result = task.enqueue()
    again = task_backends["priced"].get_result(result.id)
    assert again.task == task
    assert again.task.price == pickle.loads(pickle.dumps(again)).task.price == 3
    assert [ran.id for ran in run_pending()] == [Task.objects.get().id]
    again.refresh()
    assert (again.status, again.return_value) == (TaskResultStatus.SUCCESSFUL, 5)


def test_enqueueing_is_logged_once_with_the_id(caplog):
    """By the framework's own receiver."""
    caplog.set_level(logging.DEBUG, LOGGER)
    result = framework_tasks.nothing.enqueue()
    (line,) = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    assert "enqueued" in line
    assert result.id in line


def test_an_exception_that_holds_another_is_shown_as_it_was_raised(module):
    """Its class can be imported, and its text is whole."""

    def nested() -> None:
        raise ValueError(ValueError("inner"))

    nested.__module__, nested.__qualname__ = module.__name__, "nested"
    module.nested = framework_tasks.task(nested)
    result = module.nested.enqueue()
    run_pending()
    result.refresh()
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert 'ValueError(ValueError("inner"))' in error.traceback

"""Declaring schedules."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.utils import timezone

from tasks_app import catalogue, schedules
from tasks_app.errors import InvalidArguments, InvalidSchedule, NotJson
from tasks_app.schedules import declared, schedule
from tasks_app.tasks import Task, task


@pytest.fixture(autouse=True)
def _own_declarations(monkeypatch):
    monkeypatch.setattr(catalogue, "_tasks", {})
    monkeypatch.setattr(schedules, "_schedules", {})


def report(region: str = "eu", *, free: object = None) -> None:
    """A function."""


@pytest.fixture
def sample() -> Task:
    return task(name="t")(report)


def test_a_schedule_is_named_after_its_task_and_ticks_in_the_projects_zone(settings, sample):
    """What most declarations want."""
    settings.TIME_ZONE = "Asia/Tokyo"
    schedule(sample, " */5  *  * * * ")
    [found] = declared()
    assert (found.name, found.task, found.cron) == ("t", "t", "*/5 * * * *")
    assert (found.timezone, found.queue, found.args, found.kwargs) == (
        "Asia/Tokyo",
        "default",
        "[]",
        "{}",
    )


def test_one_task_can_have_several_schedules(sample):
    """Each with its own name, arguments and options."""
    schedule(sample, "0 7 * * *", timezone="Europe/Berlin", args=["eu"], name="eu")
    schedule(
        sample.using(queue="slow", owner="ann"),
        "0 7 * * *",
        timezone="America/New_York",
        kwargs={"region": "us"},
        name="us",
    )
    eu, us = declared()
    assert (eu.name, eu.args, eu.queue) == ("eu", '["eu"]', "default")
    assert (us.name, us.kwargs, us.queue, us.owner) == ("us", '{"region":"us"}', "slow", "ann")


def test_declaring_the_same_again_is_harmless(sample):
    """Modules get imported twice."""
    schedule(sample, "0 7 * * *")
    schedule(sample, "0 7 * * *")
    assert len(declared()) == 1


def test_two_schedules_can_not_share_a_name(sample):
    """Which of them is meant is not to be guessed."""
    schedule(sample, "0 7 * * *")
    with pytest.raises(InvalidSchedule, match="'t' has one of that name; give one of them another"):
        schedule(sample, "0 8 * * *")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": ""}, "name is empty"),
        ({"name": "x" * 201}, "name has 201 characters"),
        ({"name": "a\x00"}, "can't contain NUL"),
        (
            {"timezone": "Mars/Olympus"},
            "Schedule 't': timezone is 'Mars/Olympus', which is unknown",
        ),
        ({"cron": "often"}, "cron is 'often' (Wrong number of fields)"),
        ({"cron": "0 0 " + ",".join("1" * 200) + " * *"}, "at most 200 fit"),
    ],
)
def test_a_declaration_that_breaks_a_rule_is_refused(sample, options, words):
    """At import, naming value and rule."""
    with pytest.raises(InvalidSchedule) as refused:
        schedule(sample, options.pop("cron", "0 7 * * *"), **options)
    assert words in str(refused.value)
    assert declared() == []


def test_arguments_are_checked_when_they_are_declared(sample):
    """Not at the first tick, at night."""
    with pytest.raises(InvalidArguments, match="unexpected keyword argument 'z'"):
        schedule(sample, "0 7 * * *", kwargs={"z": 1})
    with pytest.raises(NotJson, match="kwargs is not JSON"):
        schedule(sample, "0 7 * * *", kwargs={"free": object()})


def test_a_schedule_says_itself_when_to_run(sample):
    """A task with a run_at of its own makes no sense here."""
    late = timezone.make_aware(datetime(2030, 1, 1))
    with pytest.raises(InvalidSchedule, match="run_at is set"):
        schedule(sample.using(run_at=late), "0 7 * * *")

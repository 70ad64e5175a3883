"""The list of schedules and the schedule page, with pause, resume and run now."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from tasks_app.admin import schedule_verbs
from tasks_app.admin.display import NOTHING, aware, badge, moment
from tasks_app.admin.redacting import sensitive
from tasks_app.admin.steering import Button, SteeringAdmin
from tasks_app.cron import next_tick
from tasks_app.errors import InvalidSchedule
from tasks_app.models import Schedule, Task

if TYPE_CHECKING:
    from datetime import datetime

    from django_stubs_ext import WithAnnotations

    class _Seen(TypedDict):
        now: datetime

    SeenSchedule = WithAnnotations[Schedule, _Seen]

# A tick that nobody has looked at for so long is no matter of a busy moment: nothing runs that would.
_OVERDUE = timedelta(minutes=1)
_SHOWN_TICKS = 5
_SHOWN_CHARACTERS = 2_000


class ScheduleAdmin(SteeringAdmin):
    """Schedules, by name. The code declares them; here they are paused, resumed and run out of turn."""

    list_display = ("name", "state", "task", "cron", "timezone", "upcoming", "latest")
    sortable_by = ()
    ordering = ("name",)
    actions = ("pause_selected", "resume_selected", "run_selected")
    pk_converter = "int"
    buttons = (
        Button("pause", "Pause", schedule_verbs.pause, "pause", lambda each: not each.paused),
        Button("resume", "Resume", schedule_verbs.resume, "pause", lambda each: each.paused),
        Button("run", "Run now", schedule_verbs.run_now, "run", lambda each: each.active),
    )
    fieldsets = (
        (
            None,
            {"fields": (("name", "state"), ("cron", "timezone"), "ticks", "latest", "declared")},
        ),
        (
            "Task",
            {
                "fields": (
                    "task",
                    ("queue", "owner", "priority"),
                    ("max_attempts", "timeout_seconds"),
                    "arguments",
                )
            },
        ),
    )

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """May this user pause and resume schedules?"""
        return request.user.has_perm("tasks_app.pause_schedule")

    def has_run_permission(self, request: HttpRequest) -> bool:
        """May this user run schedules now?"""
        return request.user.has_perm("tasks_app.run_schedule")

    @admin.action(description="Pause selected schedules", permissions=["pause"])
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Let their ticks pass without tasks."""
        self.steer(request, queryset, schedule_verbs.pause)

    @admin.action(description="Resume selected schedules", permissions=["pause"])
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Let their ticks make tasks again."""
        self.steer(request, queryset, schedule_verbs.resume)

    @admin.action(description="Run selected schedules now", permissions=["run"])
    def run_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Enqueue the task of each once more."""
        self.steer(request, queryset, schedule_verbs.run_now)

    @admin.display(description="state")
    def state(self, schedule: SeenSchedule) -> SafeString:
        """Does it make tasks, and if not, why?"""
        if not schedule.active:
            return badge("not declared", "stalled")
        if schedule.paused:
            return badge("paused", "cancelled")
        if schedule.next_tick < schedule.now - _OVERDUE:
            return badge("overdue", "stalled")
        return badge("active", "success")

    @admin.display(description="next tick")
    def upcoming(self, schedule: SeenSchedule) -> str:
        """When it ticks next, where it does."""
        return moment(schedule.next_tick) if schedule.active else NOTHING

    @admin.display(description="next ticks")
    def ticks(self, schedule: SeenSchedule) -> str:
        """The next few, so that an expression can be checked by looking."""
        if not schedule.active:
            return NOTHING
        ticks = [aware(schedule.next_tick)]
        try:
            while len(ticks) < _SHOWN_TICKS:
                ticks.append(next_tick(schedule.cron, schedule.timezone, ticks[-1]))
        except InvalidSchedule as error:
            return str(error)
        return format_html_join(", ", "{}", ((moment(each),) for each in ticks))

    @admin.display(description="last run")
    def latest(self, schedule: SeenSchedule) -> str:
        """The last tick that made a task, and a link to that, which may have been pruned."""
        if schedule.last_task is None:
            return NOTHING
        return self.link_to(Task, schedule.last_task, moment(schedule.last_tick))

    @admin.display(description="declared")
    def declared(self, schedule: SeenSchedule) -> str:
        """When a process last said that it declares it."""
        return moment(schedule.declared_at)

    @admin.display(description="arguments")
    def arguments(self, schedule: SeenSchedule) -> str:
        """Positional ones, then keywords."""
        args, kwargs = sensitive(schedule.task).hide(schedule.args, schedule.kwargs)
        text = f"{json.dumps(args)} {json.dumps(kwargs)}"
        return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"

"""What an operator can do to tasks: actions over a selection in the list, buttons on the task page."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest

from asyncpoll.contract import TERMINAL, Status
from tasks_app.admin import task_verbs
from tasks_app.admin.accounting import Steered
from tasks_app.admin.steering import Button, SteeringAdmin, Verb
from tasks_app.models import Task


def _can_be_stopped(task: Task) -> bool:
    return task.status not in TERMINAL and not task.cancel_requested


def _can_be_requeued(task: Task) -> bool:
    return task.status == Status.RUNNING and not task.cancel_requested


def _is_over(task: Task) -> bool:
    return task.status in TERMINAL


class TaskActions(SteeringAdmin):
    """Cancel, run again, requeue and delete."""

    actions = ("cancel_selected", "run_again_selected", "requeue_selected", "remove_selected")
    buttons = (
        Button("cancel", "Cancel", task_verbs.cancel, "cancel", _can_be_stopped),
        Button("requeue", "Requeue", task_verbs.requeue, "requeue", _can_be_requeued),
        Button("run_again", "Run again", task_verbs.run_again, "run_again", _is_over),
    )

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """May this user cancel tasks?"""
        return request.user.has_perm("tasks_app.cancel_task")

    def has_run_again_permission(self, request: HttpRequest) -> bool:
        """May this user run tasks again?"""
        return request.user.has_perm("tasks_app.run_again_task")

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """May this user put running tasks back into their queue?"""
        return request.user.has_perm("tasks_app.requeue_task")

    def has_remove_permission(self, request: HttpRequest) -> bool:
        """May this user delete tasks? By our actions: Django's own would go round the store."""
        return request.user.has_perm("tasks_app.delete_task")

    @admin.action(description="Cancel selected tasks", permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """End those that wait, ask those that run to stop."""
        self._steer_selected(request, task_verbs.cancel)

    @admin.action(description="Run selected tasks again", permissions=["run_again"])
    def run_again_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Enqueue a copy of each that is over."""
        self._steer_selected(request, task_verbs.run_again)

    @admin.action(description="Requeue selected running tasks", permissions=["requeue"])
    def requeue_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Put those that run back into their queues."""
        self._steer_selected(request, task_verbs.requeue)

    @admin.action(description="Delete selected tasks", permissions=["remove"])
    def remove_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete each with its history."""
        self._steer_selected(request, task_verbs.delete)

    def row_of(self, request: HttpRequest, pk: UUID) -> Task:
        """The task, or what stands for one that is gone, of which the account says so."""
        [task] = task_verbs.found([pk])
        return task

    def page_after(self, pk: UUID, steered: Steered) -> str:
        """The page of the new task, where there is one."""
        return self.url_of(Task, steered.new_id or pk)

    def _steer_selected(self, request: HttpRequest, verb: Verb) -> None:
        """Do `verb` to the ticked tasks, also those that left the filter meanwhile: each is accounted for."""
        if request.POST.get("select_across") == "1":
            self.message_user(
                request,
                "Nothing was done: tick the tasks one by one, or act on all that a filter matches below the list.",
                messages.ERROR,
            )
            return
        ticked = map(UUID, request.POST.getlist(ACTION_CHECKBOX_NAME))
        self.steer(request, task_verbs.found(ticked), verb)

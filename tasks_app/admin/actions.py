"""What an operator can do to tasks: actions over a selection in the list, buttons on the task page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path

from tasks_app.admin import steering
from tasks_app.admin.readonly import ReadOnlyAdmin
from tasks_app.models import Task


class SteeringAdmin(ReadOnlyAdmin):
    """A read-only admin of tasks with cancel, run again, requeue and delete, each for users with the permission to do it."""

    actions = ("cancel_selected", "run_again_selected", "requeue_selected", "remove_selected")

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
        self._steer_selected(request, steering.cancel)

    @admin.action(description="Run selected tasks again", permissions=["run_again"])
    def run_again_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Enqueue a copy of each that is over."""
        self._steer_selected(request, steering.run_again)

    @admin.action(description="Requeue selected running tasks", permissions=["requeue"])
    def requeue_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Put those that run back into their queues."""
        self._steer_selected(request, steering.requeue)

    @admin.action(description="Delete selected tasks", permissions=["remove"])
    def remove_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete each with its history."""
        self._steer_selected(request, steering.delete)

    def get_urls(self) -> list[URLPattern]:
        """The buttons' addresses, before Django's, whose last one takes everything."""
        return [
            path(
                "<uuid:task_id>/cancel/",
                self.admin_site.admin_view(self.cancel_view),
                name="tasks_app_task_cancel",
            ),
            path(
                "<uuid:task_id>/run-again/",
                self.admin_site.admin_view(self.run_again_view),
                name="tasks_app_task_run_again",
            ),
            path(
                "<uuid:task_id>/requeue/",
                self.admin_site.admin_view(self.requeue_view),
                name="tasks_app_task_requeue",
            ),
            *super().get_urls(),
        ]

    def cancel_view(self, request: HttpRequest, task_id: UUID) -> HttpResponse:
        """POST: cancel this task."""
        return self._steer_one(request, task_id, steering.cancel, self.has_cancel_permission)

    def run_again_view(self, request: HttpRequest, task_id: UUID) -> HttpResponse:
        """POST: run this task again, and show the new one."""
        return self._steer_one(request, task_id, steering.run_again, self.has_run_again_permission)

    def requeue_view(self, request: HttpRequest, task_id: UUID) -> HttpResponse:
        """POST: put this running task back into its queue."""
        return self._steer_one(request, task_id, steering.requeue, self.has_requeue_permission)

    def _steer_selected(self, request: HttpRequest, verb: steering.Verb) -> None:
        """Do `verb` to the ticked tasks, also those that left the filter meanwhile: each is accounted for."""
        if request.POST.get("select_across") == "1":
            self.message_user(
                request,
                "Nothing was done: tick the tasks one by one, or act on all that a filter matches below the list.",
                messages.ERROR,
            )
            return
        self._steer(request, map(UUID, request.POST.getlist(ACTION_CHECKBOX_NAME)), verb)

    def _steer_one(
        self,
        request: HttpRequest,
        task_id: UUID,
        verb: steering.Verb,
        is_allowed: Callable[[HttpRequest], bool],
    ) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not is_allowed(request):
            raise PermissionDenied
        [steered] = self._steer(request, [task_id], verb)
        return HttpResponseRedirect(self.url_of(Task, steered.new_id or task_id))

    def _steer(self, request: HttpRequest, ids: Any, verb: steering.Verb) -> list[steering.Steered]:
        results = steering.steer(
            ids, verb, log=lambda task, line: self.log_change(request, task, line)
        )
        for was_done, sentence in steering.account(results):
            self.message_user(request, sentence, messages.SUCCESS if was_done else messages.WARNING)
        return results

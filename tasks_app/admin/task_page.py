"""The page of one task: the facts, what went in and came out, its attempts and its history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.forms import Media
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.utils.html import format_html, format_html_join

from asyncpoll.contract import TERMINAL, Status
from tasks_app import catalogue, conf, queues
from tasks_app.admin import live
from tasks_app.admin.display import NOTHING, duration, instant, status_badge
from tasks_app.admin.documents import documents, is_json, whole
from tasks_app.admin.history import SHOWN_ROWS, history
from tasks_app.admin.task_list import TaskList
from tasks_app.errors import UnknownTask
from tasks_app.models import Task, WorkerProcess
from tasks_app.store.verbs import OUTSIDE_WORKER

if TYPE_CHECKING:
    from tasks_app.admin.task_list import SeenTask

_SHOWN_RETRIES = 5


class TaskPage(TaskList):
    """Its facts as fields, and the rest below them."""

    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("state", "version", "priority"),
                    "declared_type",
                    ("queue", "owner"),
                    "latest",
                )
            },
        ),
        (
            "Times",
            {"fields": (("created", "due"), ("started", "waited"), ("finished", "took"))},
        ),
        (
            "Attempts",
            {
                "fields": (
                    ("attempts", "failed", "time_limit"),
                    ("worker_link", "lease"),
                    ("retried_from_link", "retries"),
                )
            },
        ),
    )

    @property
    def media(self) -> Media:
        """With the script that keeps a task's page up to date."""
        return super().media + Media(js=["tasks_app/live.js"])

    def get_urls(self) -> list[Any]:
        """What a task's page fetches: changes, and documents as files."""
        poll = path("<uuid:task_id>/live/", self.live_view, name="changes")
        download = path(
            "<uuid:task_id>/download/<slug:name>/",
            self.admin_site.admin_view(self.download_view),
            name=self.url_name("download"),
        )
        return [live.held_apart("asyncpoll_task", poll), download, *super().get_urls()]

    @transaction.non_atomic_requests
    async def live_view(self, request: HttpRequest, task_id: UUID) -> HttpResponse:
        """GET: held until the task has another version than `after`, or for a while."""
        known = live.version_in(request.GET.get("after", ""))

        async def wait() -> dict[str, Any]:
            return await live.task_changed(task_id, known)

        return await live.answered(request, self.may_look, wait)

    def download_view(self, request: HttpRequest, task_id: UUID, name: str) -> HttpResponse:
        """GET: all of a document of which the page shows the beginning."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        text = whole(task_id, name)
        if text is None:
            raise Http404
        kind, suffix = ("application/json", "json") if is_json(name) else ("text/plain", "txt")
        response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
        # Never shown by a browser: whoever submitted the task chose what is in it.
        response.headers["Content-Disposition"] = (
            f'attachment; filename="{task_id}-{name}.{suffix}"'
        )
        return response

    def _processes(self, ids: set[UUID | None]) -> dict[UUID, WorkerProcess]:
        """Those of ours that are on record."""
        workers = WorkerProcess.objects.using(conf.current().DATABASE)
        return workers.in_bulk([each for each in ids if each is not None])

    def _worker(self, worker: UUID | None, processes: Mapping[UUID, WorkerProcess]) -> str:
        """Who made an attempt: a link to what is on record."""
        if worker is None:
            return NOTHING
        is_known = worker in processes
        return self.link_to(WorkerProcess, worker, str(worker)) if is_known else str(worker)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """The task page: the facts, then what the template shows below them."""
        task = context["original"]
        told = history(task.pk, task.quotes)
        processes = self._processes({each.worker for each in told.tries})
        below = {
            "title": "Task",
            "is_over": task.status in TERMINAL,
            "said": _said_of(task),
            "documents": documents(task.pk, task.name, task.quotes),
            "history": told,
            "tries": [(each, self._worker(each.worker, processes)) for each in told.tries],
            "history_rows": SHOWN_ROWS,
        }
        return super().render_change_form(request, context | below, *args, **options)

    @admin.display(description="type")
    def declared_type(self, task: SeenTask) -> str:
        """The name, and a note where this process has no such task: renamed, deleted, or declared elsewhere."""
        if task.backend:
            return f"{task.name} (of Django's Tasks framework, through TASKS[{task.backend!r}])"
        try:
            catalogue.find(task.name)
        except UnknownTask:
            return f"{task.name} (not declared in this process)"
        return task.name

    @admin.display(description="created")
    def created(self, task: SeenTask) -> str:
        """When it was enqueued."""
        return instant(task.created_at)

    @admin.display(description="due")
    def due(self, task: SeenTask) -> str:
        """When it may start, or may start again."""
        return instant(task.run_at)

    @admin.display(description="started")
    def started(self, task: SeenTask) -> str:
        """When the latest attempt began."""
        return instant(task.started_at)

    @admin.display(description="waited")
    def waited(self, task: SeenTask) -> str:
        """From due to the start of the attempt that it is at."""
        if task.started_at is None or task.status == Status.PENDING:
            return NOTHING
        return duration(task.started_at - task.run_at)

    @admin.display(description="finished")
    def finished(self, task: SeenTask) -> str:
        """When it was over."""
        return instant(task.finished_at)

    @admin.display(description="took")
    def took(self, task: SeenTask) -> str:
        """From the start of the latest attempt to the end, or to now."""
        if task.started_at is None or task.status == Status.PENDING:
            return NOTHING
        if task.finished_at is None:
            return f"{duration(task.now - task.started_at)} so far"
        return duration(task.finished_at - task.started_at)

    @admin.display(description="attempt")
    def attempts(self, task: SeenTask) -> int:
        """The attempt that it is at; 0 before the first."""
        return task.attempt

    @admin.display(description="failures")
    def failed(self, task: SeenTask) -> str:
        """How many attempts failed, of those that may."""
        return f"{task.failures} of {task.max_attempts} allowed"

    @admin.display(description="time limit")
    def time_limit(self, task: SeenTask) -> str:
        """Of one attempt."""
        return duration(timedelta(seconds=task.timeout_seconds))

    @admin.display(description="lease until")
    def lease(self, task: SeenTask) -> str:
        """When its worker is taken for dead unless it says something."""
        return instant(task.lease_expires_at)

    @admin.display(description="worker")
    def worker_link(self, task: SeenTask) -> str:
        """The process that has or had the latest attempt."""
        if task.worker is None:
            return NOTHING
        if task.worker == OUTSIDE_WORKER:
            return "code outside the workers (notify_step_completed)"
        worker = WorkerProcess.objects.using(task._state.db).filter(pk=task.worker).first()
        if worker is None and queues.reserved_by(task.queue) is not None:
            return "an executor elsewhere"
        if worker is None:
            return f"{task.worker} (no longer recorded)"
        return self.link_to(WorkerProcess, worker.pk, f"{worker} · {worker.pk}")

    @admin.display(description="retried from")
    def retried_from_link(self, task: SeenTask) -> str:
        """The task that this one runs again."""
        if task.retried_from is None:
            return NOTHING
        return self.link_to(Task, task.retried_from, str(task.retried_from))

    @admin.display(description="run again as")
    def retries(self, task: SeenTask) -> str:
        """The newest tasks that run this one again, and how they are."""
        rows = Task.objects.using(task._state.db).filter(retried_from=task.pk).order_by("-id")
        found = [
            format_html("{} {}", self.link_to(Task, pk, str(pk)), status_badge(status))
            for pk, status in rows.values_list("pk", "status")[:_SHOWN_RETRIES]
        ]
        return format_html_join("", "<div>{}</div>", ([each] for each in found)) or NOTHING


def _said_of(task: SeenTask) -> str:
    """What a screen reader says when it changes: every tenth is often enough."""
    if task.progress is None or task.status in TERMINAL:
        return task.status
    return f"{task.status}, {10 * int(10 * task.progress)} %"

"""The task list and the task page."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Case, Q, QuerySet, When
from django.db.models.functions import Left
from django.forms import Media
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from asyncpoll.contract import TERMINAL, Status
from tasks_app import catalogue, conf, queues
from tasks_app.admin import live, searching
from tasks_app.admin.actions import SteeringAdmin
from tasks_app.admin.display import (
    NOTHING,
    duration,
    first_line,
    instant,
    moment,
    progress_bar,
    status_badge,
)
from tasks_app.admin.documents import documents, is_json, whole
from tasks_app.admin.filters import QueueFilter, StatusFilter, TypeFilter
from tasks_app.admin.history import SHOWN_ROWS, history
from tasks_app.admin.listing import LongList
from tasks_app.admin.orders import OrderingAdmin
from tasks_app.errors import UnknownTask
from tasks_app.models import Task, WorkerProcess
from tasks_app.store.verbs import OUTSIDE_WORKER

if TYPE_CHECKING:
    from datetime import datetime

    from django_stubs_ext import WithAnnotations

    class _Seen(TypedDict):
        now: datetime
        said: str
        why: str | None

    SeenTask = WithAnnotations[Task, _Seen]

# A list must never read these: a row can hold megabytes. The task page reads the beginning of each.
LARGE_COLUMNS = (
    "args",
    "kwargs",
    "result",
    "error_message",
    "traceback",
    "message",
    "trace_context",
)
_MESSAGE_CHARACTERS = 300
_ERROR_CHARACTERS = 60


class TaskAdmin(LongList, SteeringAdmin, OrderingAdmin):
    """Tasks, newest first."""

    list_display = ("state_and_version", "name_and_id", "age", "latest", "lane")
    list_display_links = ("name_and_id",)
    list_filter = (StatusFilter, TypeFilter, QueueFilter)
    search_fields = ("id__exact", "name__exact", "owner__exact")
    search_help_text = searching.HELP
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
                    "retried_from_link",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Tasks without what can be large, and with the beginnings of their message and error."""
        rows = super().get_queryset(request).defer(*LARGE_COLUMNS)
        why = Left("error_message", _ERROR_CHARACTERS + 1)
        return rows.annotate(
            said=Left("message", _MESSAGE_CHARACTERS),
            why=Case(When(status=Status.FAILED, then=why)),
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
            name="tasks_app_task_download",
        )
        order = path(
            "order/", self.admin_site.admin_view(self.order_view), name="tasks_app_task_order"
        )
        return [live.held_apart("asyncpoll_task", poll), download, order, *super().get_urls()]

    @transaction.non_atomic_requests
    async def live_view(self, request: HttpRequest, task_id: UUID) -> HttpResponse:
        """GET: held until the task has another version than `after`, or for a while."""
        known = request.GET.get("after", "")

        async def wait() -> dict[str, Any]:
            return await live.task_changed(task_id, int(known) if known.isdecimal() else 0)

        return await live.answered(request, self._may_look, wait)

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

    def _may_look(self, request: HttpRequest) -> bool:
        return self.admin_site.has_permission(request) and self.has_view_permission(request)

    def span_of(self, request: HttpRequest, term: str) -> Q | None:
        """Running tasks have an index of their own."""
        if request.GET.get("status") == Status.RUNNING:
            return None
        return super().span_of(request, term)

    def matching(self, term: str) -> Q | None:
        """Tasks by id, type, owner, queue or worker."""
        return searching.condition(term)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """The task page: the facts, then what the template shows below them."""
        over = obj.status in TERMINAL
        told = history(obj.pk)
        below = {
            "title": "Task",
            "is_over": over,
            "documents": documents(obj.pk, obj.name),
            "history": told,
            "processes": self._processes({each.worker for each in told.tries}),
            "history_rows": SHOWN_ROWS,
            "can_cancel": self.has_cancel_permission(request)
            and not over
            and not obj.cancel_requested,
            "can_requeue": self.has_requeue_permission(request)
            and obj.status == Status.RUNNING
            and not obj.cancel_requested,
            "can_run_again": self.has_run_again_permission(request) and over,
        }
        return super().render_change_form(request, context | below, add, change, form_url, obj)

    @admin.display(description="status")
    def state(self, task: SeenTask) -> SafeString:
        """Status, and whether it is stalled or being cancelled."""
        lease = task.lease_expires_at
        return status_badge(
            task.status,
            stalled=lease is not None and lease < task.now,
            stopping=task.status == Status.RUNNING and task.cancel_requested,
        )

    @admin.display(description="status")
    def state_and_version(self, task: SeenTask) -> SafeString:
        """The same, and below it the version."""
        version = '{}<br><span class="asyncpoll-id">version {}</span>'
        return format_html(version, self.state(task), task.version)

    @admin.display(description="queue")
    def lane(self, task: SeenTask) -> SafeString:
        """The queue, and below it the owner."""
        return format_html(
            '{}<br><span class="asyncpoll-message">{}</span>', task.queue, task.owner
        )

    @admin.display(description="task")
    def name_and_id(self, task: SeenTask) -> SafeString:
        """The type, and below it the id."""
        return format_html('{}<br><span class="asyncpoll-id">{}</span>', task.name, task.pk)

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

    @admin.display(description="progress")
    def latest(self, task: SeenTask) -> str:
        """How far it is; why it failed, or when it is due; and what it said last."""
        bar = progress_bar(task.progress, task.status) or ""
        lines = [line for line in (_standing(task), task.said) if line]
        if not (bar or lines):
            return NOTHING
        message = '<div class="asyncpoll-message">{}</div>'
        return format_html("{} {}", bar, format_html_join("", message, ([line] for line in lines)))

    @admin.display(description="age")
    def age(self, task: SeenTask) -> SafeString:
        """Time since it was enqueued."""
        return format_html(
            '<time datetime="{0}" title="{0}">{1}</time>',
            task.created_at.isoformat(timespec="milliseconds"),
            duration(task.now - task.created_at, units=1),
        )

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


def _standing(task: SeenTask) -> str:
    """What an operator asks first of a task that failed, or that waits although a worker is free."""
    if task.why is not None:
        return first_line(f"{task.error_type}: {task.why}", _ERROR_CHARACTERS)
    is_later = task.status == Status.PENDING and task.run_at > task.now
    return f"due {moment(task.run_at)}" if is_later else ""

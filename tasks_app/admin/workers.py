"""The worker list and the worker page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tasks_app import conf
from tasks_app.admin.display import NOTHING, badge, duration, moment
from tasks_app.admin.readonly import ReadOnlyAdmin
from tasks_app.models import Task, WorkerProcess

if TYPE_CHECKING:
    from datetime import datetime

    from django_stubs_ext import WithAnnotations

    class _Seen(TypedDict):
        now: datetime

    SeenWorker = WithAnnotations[WorkerProcess, _Seen]


class StoppedFilter(SimpleListFilter):
    """Those that said goodbye, or those that did not."""

    title, parameter_name = "state", "stopped"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Two choices."""
        return [("no", "Running or silent"), ("yes", "Stopped")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The workers that did, or did not, record their end."""
        if self.value() not in ("no", "yes"):
            return queryset
        return queryset.filter(stopped_at__isnull=self.value() == "no")


class WorkerProcessAdmin(ReadOnlyAdmin):
    """Worker processes, those that run first."""

    list_display = (
        "process",
        "state",
        "queue_names",
        "load",
        "heartbeat_age",
        "started",
        "stopped",
    )
    list_filter = (StoppedFilter,)
    sortable_by = ()
    actions = None
    ordering = (F("stopped_at").desc(nulls_first=True), "-heartbeat_at")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "id",
                    ("hostname", "pid", "state"),
                    ("queue_names", "load", "held_tasks"),
                    ("started", "heartbeat_age", "stopped"),
                )
            },
        ),
    )

    @admin.display(description="process")
    def process(self, worker: SeenWorker) -> str:
        """Host and process id."""
        return str(worker)

    @admin.display(description="state")
    def state(self, worker: SeenWorker) -> SafeString:
        """Running; silent once its leases have run out; stopped when it said so."""
        if worker.stopped_at is not None:
            return badge("stopped", "cancelled")
        silent = (worker.now - worker.heartbeat_at).total_seconds() > conf.current().LEASE_SECONDS
        return badge("silent", "stalled") if silent else badge("running", "success")

    @admin.display(description="queues")
    def queue_names(self, worker: SeenWorker) -> str:
        """The queues it takes tasks from."""
        return ", ".join(map(str, worker.queues)) or "every queue"

    @admin.display(description="running")
    def load(self, worker: SeenWorker) -> str:
        """Tasks it runs, of those it may run at once."""
        return f"{worker.running} of {worker.concurrency}"

    @admin.display(description="heartbeat")
    def heartbeat_age(self, worker: SeenWorker) -> str:
        """Time since it last said that it is alive."""
        return f"{duration(worker.now - worker.heartbeat_at)} ago"

    @admin.display(description="started")
    def started(self, worker: SeenWorker) -> str:
        """When the process began."""
        return moment(worker.started_at)

    @admin.display(description="stopped")
    def stopped(self, worker: SeenWorker) -> str:
        """When it recorded its end."""
        return moment(worker.stopped_at)

    @admin.display(description="tasks")
    def held_tasks(self, worker: SeenWorker) -> str:
        """A link to the tasks that it holds now."""
        if not self.has_pages(Task):
            return NOTHING
        tasks = self.address_of("changelist", model=Task)
        return format_html(
            '<a href="{}?status=RUNNING&amp;q=worker:{}">Tasks it runs now</a>', tasks, worker.pk
        )

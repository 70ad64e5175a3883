"""The list of tasks: what it reads, how it is narrowed, and what its columns say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from django.contrib import admin
from django.db.models import Case, Q, QuerySet, When
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from asyncpoll.contract import TERMINAL, Status
from tasks_app.admin import searching
from tasks_app.admin.display import (
    NOTHING,
    duration,
    first_line,
    moment,
    progress_bar,
    status_badge,
)
from tasks_app.admin.filters import QueueFilter, StatusFilter, TypeFilter
from tasks_app.admin.listing import LongList
from tasks_app.admin.quoting import Quotes, quotes_of
from tasks_app.models import Task

if TYPE_CHECKING:
    from datetime import datetime

    from django_stubs_ext import WithAnnotations

    class _Seen(TypedDict):
        now: datetime
        said: str
        why: str | None
        quotes: Quotes

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


class TaskList(LongList):
    """Tasks, newest first."""

    list_display = ("state_and_version", "name_and_id", "age", "latest", "lane")
    list_display_links = ("name_and_id",)
    list_filter = (StatusFilter, TypeFilter, QueueFilter)
    search_fields = ("id__exact", "name__exact", "owner__exact")
    search_help_text = searching.HELP

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Tasks without what can be large, and with the beginnings of their message and error."""
        rows = super().get_queryset(request).defer(*LARGE_COLUMNS)
        why = Left("error_message", _ERROR_CHARACTERS + 1)
        return rows.annotate(
            said=Left("message", _MESSAGE_CHARACTERS),
            why=Case(When(status=Status.FAILED, then=why)),
        )

    def prepare(self, rows: Sequence[Any]) -> None:
        """Each with what its texts must not say."""
        found = quotes_of({task.pk: task.name for task in rows})
        for task in rows:
            task.quotes = found[task.pk]

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """The same for the one of a page."""
        task = super().get_object(request, object_id, from_field)
        self.prepare([task] if task else [])
        return task

    def spans_of(self, request: HttpRequest, term: str) -> Sequence[Q]:
        """Running tasks are few and have an index of their own; those that did not succeed have one, newest first."""
        status = request.GET.get("status")
        if status == Status.RUNNING:
            return ()
        spans = super().spans_of(request, term)
        is_unsuccessful = status in (Status.FAILED, Status.CANCELLED)
        return (Q(status=status), *spans) if is_unsuccessful and spans else spans

    def matching(self, term: str) -> Q | None:
        """Tasks by id, type, owner, queue or worker."""
        return searching.condition(term)

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

    @admin.display(description="task")
    def name_and_id(self, task: SeenTask) -> SafeString:
        """The type, and below it the id."""
        return format_html('{}<br><span class="asyncpoll-id">{}</span>', task.name, task.pk)

    @admin.display(description="age")
    def age(self, task: SeenTask) -> SafeString:
        """Time since it was enqueued."""
        return format_html(
            '<time datetime="{0}" title="{0}">{1}</time>',
            task.created_at.isoformat(timespec="milliseconds"),
            duration(task.now - task.created_at, units=1),
        )

    @admin.display(description="progress")
    def latest(self, task: SeenTask) -> str:
        """How far it is; why it failed, or when it is due; and what it said last."""
        bar = progress_bar(task.progress, task.status) or ""
        lines = [line for line in (_standing(task), _said(task)) if line]
        if not (bar or lines):
            return NOTHING
        message = '<div class="asyncpoll-message">{}</div>'
        return format_html("{} {}", bar, format_html_join("", message, ([line] for line in lines)))

    @admin.display(description="queue")
    def lane(self, task: SeenTask) -> SafeString:
        """The queue, and below it the owner."""
        return format_html(
            '{}<br><span class="asyncpoll-message">{}</span>', task.queue, task.owner
        )


def _standing(task: SeenTask) -> str:
    """What an operator asks first of a task that failed, or that waits although a worker is free."""
    if task.why is not None:
        why = task.quotes.hide(task.why, is_cut=len(task.why) > _ERROR_CHARACTERS)
        return first_line(f"{task.error_type}: {why}", _ERROR_CHARACTERS)
    is_later = task.status == Status.PENDING and task.run_at > task.now
    return f"due {moment(task.run_at)}" if is_later else ""


def _said(task: SeenTask) -> str:
    """What it said last; of a task that is over, that is how it once was."""
    said = task.quotes.hide(task.said, is_cut=len(task.said) == _MESSAGE_CHARACTERS)
    return f"last said: {said}" if said and task.status in TERMINAL else said

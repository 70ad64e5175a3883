"""The message centre: what inboxes hold, and what became of each delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tasks_app import conf
from tasks_app.admin import searching
from tasks_app.admin.display import (
    NOTHING,
    badge,
    duration,
    first_line,
    instant,
    moment,
    status_badge,
)
from tasks_app.admin.filters import Exact
from tasks_app.admin.listing import LongList
from tasks_app.admin.quoting import quotes_of
from tasks_app.models import Delivery, DeliveryAttempt, InboxEntry, Task
from tasks_app.models.delivery import State

if TYPE_CHECKING:
    from datetime import datetime

    from django_stubs_ext import WithAnnotations

    class _Seen(TypedDict):
        now: datetime

    SeenDelivery = WithAnnotations[Delivery, _Seen]

_TONES = {
    State.WAITING: "pending",
    State.DUE: "running",
    State.DELIVERED: "success",
    State.FAILED: "failed",
}
_ERROR_CHARACTERS = 300
# Tried again for thirty days at most, which is some eight hundred attempts.
_SHOWN_ATTEMPTS = 1_000


class StateFilter(Exact):
    """By state."""

    title, parameter_name, field = "state", "state", "state"

    def known(self) -> Any:
        """The four states."""
        return iter(State.choices)


class AcknowledgedFilter(SimpleListFilter):
    """Those that were acknowledged, or were not."""

    title, parameter_name = "acknowledged", "acknowledged"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Two choices."""
        return [("no", "Not yet"), ("yes", "Acknowledged")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The entries that were, or were not."""
        if self.value() not in ("no", "yes"):
            return queryset
        return queryset.filter(acknowledged_at__isnull=self.value() == "no")


class InboxEntryAdmin(LongList):
    """What owners were told, newest first."""

    list_display = ("name_and_id", "state", "owner", "delivered", "acknowledged")
    list_filter = (AcknowledgedFilter,)
    search_fields = ("id__exact", "owner__exact")
    search_help_text = searching.ENTRY_HELP
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("state", "version"),
                    ("name", "queue", "owner"),
                    "task_link",
                    "failure",
                    ("finished", "delivered", "acknowledged"),
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Entries without the text of their error, of which the page shows the beginning."""
        rows = super().get_queryset(request).defer("error_message")
        return rows.annotate(why=Left("error_message", _ERROR_CHARACTERS))

    def matching(self, term: str) -> Q | None:
        """Entries by id or owner."""
        return searching.entry_condition(term)

    @admin.display(description="task")
    def name_and_id(self, entry: InboxEntry) -> SafeString:
        """The type, and below it the task's id."""
        return format_html('{}<br><span class="asyncpoll-id">{}</span>', entry.name, entry.task_id)

    @admin.display(description="status")
    def state(self, entry: InboxEntry) -> SafeString:
        """How the task ended."""
        return status_badge(entry.status)

    @admin.display(description="task")
    def task_link(self, entry: InboxEntry) -> str:
        """Its page, as long as it is kept."""
        return self.link_to(Task, entry.task_id, str(entry.task_id))

    @admin.display(description="error")
    def failure(self, entry: Any) -> str:
        """Why it failed."""
        if not entry.error_type:
            return NOTHING
        quotes = quotes_of({entry.task_id: entry.name})[entry.task_id]
        why = quotes.hide(entry.why, is_cut=len(entry.why) == _ERROR_CHARACTERS)
        return first_line(f"{entry.error_type}: {why}", _ERROR_CHARACTERS)

    @admin.display(description="finished")
    def finished(self, entry: InboxEntry) -> str:
        """When the task was over."""
        return instant(entry.finished_at)

    @admin.display(description="delivered")
    def delivered(self, entry: InboxEntry) -> str:
        """When it came into the inbox."""
        return instant(entry.created_at)

    @admin.display(description="acknowledged")
    def acknowledged(self, entry: InboxEntry) -> str:
        """When its owner took it off the list."""
        return moment(entry.acknowledged_at)


class DeliveryAdmin(LongList):
    """Claim checks and what became of them, newest first."""

    list_display = ("where", "condition", "owner", "attempts", "last_error", "created")
    list_filter = (StateFilter,)
    search_fields = ("id__exact", "task_id__exact", "owner__exact")
    search_help_text = searching.DELIVERY_HELP
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("condition", "attempts", "last_error"),
                    ("address", "owner"),
                    "task_link",
                    ("created", "owed", "next_attempt", "finished"),
                )
            },
        ),
    )

    def matching(self, term: str) -> Q | None:
        """Deliveries by task, owner or id."""
        return searching.delivery_condition(term)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """The delivery's page, with its attempts below."""
        delivery = context["original"]
        tries = DeliveryAttempt.objects.using(conf.current().DATABASE)
        context["tries"] = tries.filter(delivery_id=delivery.pk).order_by("-number")[
            :_SHOWN_ATTEMPTS
        ]
        return super().render_change_form(request, context, *args, **options)

    @admin.display(description="to")
    def where(self, delivery: SeenDelivery) -> SafeString:
        """The host or the inbox, and below it the task's id. The rest of an address may be a secret of its receiver's."""
        return format_html(
            '{}<br><span class="asyncpoll-id">{}</span>',
            delivery.host or "inbox",
            delivery.task_id,
        )

    @admin.display(description="state")
    def condition(self, delivery: SeenDelivery) -> SafeString:
        """Where it is in its life."""
        state = State(delivery.state)
        return badge(state.label, _TONES[state])

    @admin.display(description="address")
    def address(self, delivery: SeenDelivery) -> str:
        """All of it but the query."""
        return delivery.target.partition("?")[0] or "the owner's inbox"

    @admin.display(description="task")
    def task_link(self, delivery: SeenDelivery) -> str:
        """Its page, as long as it is kept."""
        return self.link_to(Task, delivery.task_id, str(delivery.task_id))

    @admin.display(description="asked for")
    def created(self, delivery: SeenDelivery) -> str:
        """When somebody asked to be told."""
        return instant(delivery.created_at)

    @admin.display(description="due since")
    def owed(self, delivery: SeenDelivery) -> str:
        """When there was something to tell."""
        return instant(delivery.owed_at)

    @admin.display(description="next attempt")
    def next_attempt(self, delivery: SeenDelivery) -> str:
        """In how long, where there will be one."""
        if delivery.due_at is None:
            return NOTHING
        return f"in {duration(delivery.due_at - delivery.now)}"

    @admin.display(description="over")
    def finished(self, delivery: SeenDelivery) -> str:
        """When it was delivered or given up."""
        return instant(delivery.finished_at)

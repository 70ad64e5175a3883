"""Actions over all that a filter matches: asked for on one page, confirmed there, and looked at on another."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core import signing
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import IntegrityError, OperationalError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path
from django.utils.safestring import SafeString

from asyncpoll.contract import TERMINAL, Status
from tasks_app import conf
from tasks_app.admin.display import badge, moment
from tasks_app.admin.readonly import ReadOnlyAdmin
from tasks_app.limits import MAX_NAME_LENGTH, new_task_id
from tasks_app.models import Order
from tasks_app.models.order import Verb
from tasks_app.store import MOST_COUNTED, Sought, count_sought, hasten, place_order
from tasks_app.store.driver import run

PERMISSIONS: Final = {
    Verb.CANCEL: "tasks_app.cancel_task",
    Verb.RUN_AGAIN: "tasks_app.run_again_task",
    Verb.REQUEUE: "tasks_app.requeue_task",
    Verb.DELETE: "tasks_app.delete_task",
}
# Of any status where none is named.
_OPEN_TO: Final = {
    Verb.CANCEL: frozenset(Status) - TERMINAL,
    Verb.RUN_AGAIN: TERMINAL,
    Verb.REQUEUE: frozenset({Status.RUNNING}),
}
_COUNT_MILLISECONDS = 5_000
# A confirmation that lay about for longer is of another time.
_CONFIRM_SECONDS = 600
_SALT = "asyncpoll.order"
_SEARCHES = {"owner": "owner", "type": "name", "queue": "queue"}


def sought_in(request: HttpRequest) -> Sought | None:
    """The filter of a list's address; None: all tasks, or a search that can't be acted on as a whole."""
    words = {"status": "status", "type": "name", "queue": "queue"}
    found: dict[str, Any] = {
        field: request.GET[word] for word, field in words.items() if request.GET.get(word)
    }
    if any("\x00" in value for value in request.GET.values()):
        return None
    prefix, _, rest = request.GET.get("q", "").strip().partition(":")
    if prefix:
        field = _SEARCHES.get(prefix)
        if field is None or field in found or not rest.strip():
            return None
        found[field] = rest.strip()
    status = found.pop("status", None)
    if status is not None and status not in Status.__members__:
        return None
    owner = found.pop("owner", None)
    known = None if status is None else Status(status)
    return Sought(owner, known, **found) if (owner or known or found) else None


def allowed(request: HttpRequest) -> list[Verb]:
    """What this user may do to tasks."""
    return [verb for verb, permission in PERMISSIONS.items() if request.user.has_perm(permission)]


def _fitting(verbs: list[Verb], sought: Sought | None) -> list[Verb]:
    """Those that can do something to tasks of the status that is sought."""
    if sought is None or sought.status is None:
        return verbs
    return [verb for verb in verbs if sought.status in _OPEN_TO.get(verb, Status)]


class OrderingAdmin(ReadOnlyAdmin):
    """The page that counts, asks and places the order."""

    def get_urls(self) -> list[Any]:
        """Before Django's, whose last one takes everything."""
        ask = path(
            "order/", self.admin_site.admin_view(self.order_view), name=self.url_name("order")
        )
        return [ask, *super().get_urls()]

    def order_view(self, request: HttpRequest) -> HttpResponse:
        """GET: what would be touched. POST: have it done."""
        verbs = allowed(request)
        if not verbs or not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._place(request)
        sought = sought_in(request)
        newest = new_task_id()
        counted = None if sought is None else _count(sought, newest)
        is_bounded = counted is not None and counted <= MOST_COUNTED
        return self.page(
            request,
            "task/order.html",
            "Act on all that the filter matches",
            sought=sought,
            counted=counted,
            most=MOST_COUNTED,
            query=request.GET.urlencode(),
            verbs=[(verb, verb.to(counted)) for verb in _fitting(verbs, sought)]
            if is_bounded and counted
            else [],
            frozen="" if sought is None or not is_bounded else _freeze(sought, newest, counted),
        )

    def _place(self, request: HttpRequest) -> HttpResponse:
        verb = request.POST.get("verb", "")
        if verb not in Verb.values:
            raise BadRequest("No such action.")
        if not request.user.has_perm(PERMISSIONS[Verb(verb)]):
            raise PermissionDenied
        try:
            facts = signing.loads(
                request.POST.get("frozen", ""), salt=_SALT, max_age=_CONFIRM_SECONDS
            )
        except signing.BadSignature:
            self.message_user(
                request, "Nothing was done: confirm within ten minutes.", messages.ERROR
            )
            return HttpResponseRedirect(request.get_full_path())
        *filters, newest, counted = facts
        order = UUID(newest)
        try:
            placed = self._placed(request, order, verb, _thawed(*filters), counted)
        except IntegrityError:
            said = "Nothing was done: this was confirmed before."
            self.message_user(request, said, messages.WARNING)
        else:
            said = f"{placed} is on its way, in batches; this page says how far it is."
            self.message_user(request, said, messages.SUCCESS)
        return HttpResponseRedirect(self.url_of(Order, order))

    def _placed(
        self, request: HttpRequest, order: UUID, verb: str, sought: Sought, counted: int
    ) -> Order:
        """Its id is where the count began, so that nobody confirms one page twice. Raises IntegrityError."""
        with transaction.atomic(using=conf.current().DATABASE):
            run(place_order(order, verb, sought, order, counted, _name(request)))
            placed = Order.objects.using(conf.current().DATABASE).get(pk=order)
            self.log_change(request, placed, f"{placed}: {describe(placed)}.")
        return placed


def _name(request: HttpRequest) -> str:
    return str(request.user)[:MAX_NAME_LENGTH]


def describe(order: Order) -> str:
    """The filter, in words."""
    parts = {"status": order.status, "type": order.name, "queue": order.queue, "owner": order.owner}
    return ", ".join(f"{word} {value}" for word, value in parts.items() if value is not None)


def _count(sought: Sought, newest: Any) -> int | None:
    """None: it takes longer than anybody waits."""
    try:
        with transaction.atomic(using=conf.current().DATABASE):
            run(hasten(_COUNT_MILLISECONDS))
            return run(count_sought(sought, newest))
    except OperationalError:
        return None


def _freeze(sought: Sought, newest: Any, counted: int | None) -> str:
    status = None if sought.status is None else sought.status.value
    facts = [sought.owner, status, sought.name, sought.queue, str(newest), counted]
    return signing.dumps(facts, salt=_SALT)


def _thawed(owner: str | None, status: str | None, name: str | None, queue: str | None) -> Sought:
    return Sought(owner, None if status is None else Status(status), name, queue)


class OrderAdmin(ReadOnlyAdmin):
    """Bulk actions, the newest first: what was asked for, by whom, and what became of it."""

    list_display = ("__str__", "filter", "state", "done", "skipped", "placed_by", "placed")
    sortable_by = ()
    actions = None
    ordering = ("-id",)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("state", "note"),
                    ("verb", "filter"),
                    ("counted", "done", "skipped"),
                    ("placed_by", "placed", "ended"),
                )
            },
        ),
    )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Also for whoever may view tasks, of which it shows no more than how many there are."""
        may_view_tasks: bool = request.user.has_perm("tasks_app.view_task")
        return may_view_tasks or super().has_view_permission(request, obj)

    @admin.display(description="tasks with")
    def filter(self, order: Order) -> str:
        """What it is done to."""
        return describe(order)

    @admin.display(description="state")
    def state(self, order: Order) -> SafeString:
        """On its way, done, or stopped before it would have touched more."""
        if order.ended_at is None:
            return badge("on its way", "running")
        return badge("stopped", "stalled") if order.note else badge("done", "success")

    @admin.display(description="asked for")
    def placed(self, order: Order) -> str:
        """When it was confirmed."""
        return moment(order.placed_at)

    @admin.display(description="over")
    def ended(self, order: Order) -> str:
        """When the last batch was done."""
        return moment(order.ended_at)

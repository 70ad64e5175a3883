"""The overview: what waits, runs and fails now, how tasks ended over time, and who works and serves."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone

from tasks_app import conf
from tasks_app.admin import live, standing
from tasks_app.admin.planning import PlanningAdmin
from tasks_app.hold.onlooking import look_on
from tasks_app.models import WebProcess, WorkerProcess
from tasks_app.store.overviews import MOST_LOOKED_AT

_SHOWN_PROCESSES = 50
# Heartbeats wake nobody: so old may their ages be.
_STALE_SECONDS = 5.0
# Who has missed two reports is no longer there, or can't reach the database.
_SILENT_SECONDS = 15.0


class OverviewAdmin(PlanningAdmin):
    """One page in the place of a list. Whoever may view tasks may see it."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """It shows what the tasks show."""
        return request.user.has_perm("tasks_app.view_task")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """It is listed for those who may see it."""
        return self.has_view_permission(request)

    def get_urls(self) -> list[URLPattern | URLResolver]:  # type: ignore[override]
        """The page, the poll that it is refreshed by, and the plan."""
        page = path(
            "",
            self.admin_site.admin_view(self.changelist_view),
            name="tasks_app_overview_changelist",
        )
        plan = path(
            "plan/", self.admin_site.admin_view(self.plan_view), name="tasks_app_overview_plan"
        )
        poll = path("live/", self.live_view, name="changes")
        return [page, plan, live.held_apart("asyncpoll_overview", poll)]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """GET: the page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = standing.RANGES[0]
        for each in standing.RANGES:
            if each.key == request.GET.get("range"):
                chosen = each
        return self.page(
            request,
            "overview/change_list.html",
            "Overview",
            crumbs=self.crumbs()[:1],
            ranges=standing.RANGES,
            chosen=chosen,
            zone=timezone.get_current_timezone_name(),
            most=MOST_LOOKED_AT,
            workers=self._workers(),
            most_processes=_SHOWN_PROCESSES,
            webs=self._alive(WebProcess, _SILENT_SECONDS),
            **self._figures(chosen),
        )

    @transaction.non_atomic_requests
    async def live_view(self, request: HttpRequest) -> HttpResponse:
        """GET: held until something has changed, or for a while."""

        async def wait() -> dict[str, Any]:
            mark = request.GET.get("after", "")
            outcome, mark = await look_on(live.ACCOUNT, mark, live.hold_seconds(_STALE_SECONDS))
            return {"outcome": outcome, "after": mark}

        return await live.answered(request, self.may_look, wait)

    def _figures(self, chosen: standing.Range) -> dict[str, Any]:
        try:
            return {
                "queues": standing.kept.get(standing.queues),
                "spans": standing.kept.get(chosen.read),
            }
        except OperationalError:
            return {"is_late": True}

    def _workers(self) -> list[Any]:
        workers = self._alive(WorkerProcess, conf.current().LEASE_SECONDS, stopped_at=None)
        for worker in workers:
            worker.link = self.link_to(WorkerProcess, worker.pk, str(worker))
        return workers

    def _alive(self, model: Any, silent_after: float, **only: Any) -> list[Any]:
        rows: QuerySet[Any] = model.objects.using(conf.current().DATABASE).filter(**only)
        found = list(rows.annotate(now=Now()).order_by("-heartbeat_at")[:_SHOWN_PROCESSES])
        for row in found:
            row.silence = row.now - row.heartbeat_at
            row.is_silent = row.silence.total_seconds() > silent_after
        return found

"""A list that stays cheap over millions of rows: newest first, keyset pages, never a count."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest

SPAN = 50_000
"""Rows that a filtered page looks at: a filter that few rows pass makes shorter pages, and never a longer search."""


class NewestFirst(ChangeList):
    """Pages by primary key, which is a UUIDv7 and so the order of creation.

    Django's own page parameter carries the last id of the page before: filters and searches then start over at the
    first page as they do with page numbers.
    """

    newest_url = ""
    older_url = ""
    looked_at = 0
    """How many rows were looked at, where the search ended before its page was full; 0: all of them."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        """By primary key, whatever the address asks for: no other order has an index."""
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and one row more to know whether there is another."""
        after = request.GET.get(PAGE_VAR)
        before = Q(pk__lt=_parse(after)) if after else Q()
        floor = self._floor(request, before)
        rows = self.queryset.filter(before, Q() if floor is None else Q(pk__gte=floor))
        found = list(rows[: self.list_per_page + 1])
        self._show(found[: self.list_per_page])
        self.newest_url = self.get_query_string() if after else ""
        if len(found) > self.list_per_page:
            self.older_url = self.get_query_string({PAGE_VAR: self.result_list[-1].pk})
        elif floor is not None:
            self.older_url, self.looked_at = self.get_query_string({PAGE_VAR: floor}), SPAN

    def _floor(self, request: HttpRequest, before: Q) -> UUID | None:
        """Where a page of what few rows match stops looking: at the SPAN-th of whichever index reaches back furthest.
        None: it need not."""
        if not (self.has_active_filters or self.query):
            return None
        spans = self.model_admin.spans_of(request, self.query.strip())  # type: ignore[attr-defined]
        floors = []
        for span in spans:
            rows = self.model._default_manager.using(self.root_queryset.db).filter(before, span)
            found = rows.order_by("-pk").values_list("pk", flat=True)[SPAN : SPAN + 1]
            if not found:
                return None
            floors.append(found[0])
        return min(floors, default=None)

    def _show(self, rows: list[Any]) -> None:
        """One page is all that the templates know of, so that none offers "all" of what nobody counted."""
        self.model_admin.prepare(rows)  # type: ignore[attr-defined]
        self.result_list = rows
        self.result_count = self.full_result_count = len(rows)
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = False
        self.multi_page = False
        self.paginator = Paginator(rows, self.list_per_page)


def _parse(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise IncorrectLookupParameters(
            f"{PAGE_VAR} is {text!r}; it must be a task's id."
        ) from None

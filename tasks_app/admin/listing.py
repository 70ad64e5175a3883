"""What the lists that may be long have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from tasks_app.admin import searching
from tasks_app.admin.changelist import NewestFirst
from tasks_app.admin.readonly import ReadOnlyAdmin


class LongList(ReadOnlyAdmin):
    """Newest first, in pages that nobody counts; our filters, and exact searches, which have an index each."""

    list_per_page = 50
    sortable_by = ()
    ordering = ("-id",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestFirst]:
        """The list that never counts."""
        return NewestFirst

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Exact matches only; never with duplicates."""
        term = search_term.strip()
        if not term:
            return queryset, False
        condition = self.matching(term)
        return (queryset.none() if condition is None else queryset.filter(condition)), False

    def spans_of(self, request: HttpRequest, term: str) -> Sequence[Q]:
        """Which rows indexes give newest first, each of which has all that a filtered list is searched for; none: few, by
        an index."""
        span = searching.span(term)
        return () if span is None else (span,)

    def prepare(self, rows: Sequence[Any]) -> None:
        """Give the rows of a page what their columns need besides."""

    def matching(self, term: str) -> Q | None:
        """What rows match a search term; None: no row can."""
        raise NotImplementedError

"""A list that stays cheap over millions of rows: newest first, keyset pages, never a count."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest


class NewestFirst(ChangeList):
    """Pages by primary key, which is a UUIDv7 and so the order of creation.

    Django's own page parameter carries the last id of the page before: filters and searches then start over at the
    first page as they do with page numbers.
    """

    newest_url = ""
    older_url = ""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        """By primary key, whatever the address asks for: no other order has an index."""
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and one row more to know whether there is another."""
        after = request.GET.get(PAGE_VAR)
        rows = self.queryset.filter(pk__lt=_parse(after)) if after else self.queryset
        found = list(rows[: self.list_per_page + 1])
        self._show(found[: self.list_per_page])
        self.newest_url = self.get_query_string() if after else ""
        if len(found) > self.list_per_page:
            self.older_url = self.get_query_string({PAGE_VAR: self.result_list[-1].pk})

    def _show(self, rows: list[Any]) -> None:
        """One page is all that the templates know of, so that none offers "all" of what nobody counted."""
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

"""The base of our admin pages: rows are looked at, never written."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst

from tasks_app import conf


class ReadOnlyAdmin(admin.ModelAdmin):
    """No adding, editing or deleting: any of them would go round the store, and waiters would not hear of it."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ("tasks_app/admin.css",)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tasks are enqueued; workers register themselves."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is editable. What actions need is asked for by name."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The ORM would delete a task without telling whoever waits for it."""
        return False

    def may_look(self, request: HttpRequest) -> bool:
        """May this user have what a page fetches, from an address that `admin_view` does not guard?"""
        return self.admin_site.has_permission(request) and self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows of the tasks' database, each with `now` by its clock: the application's may be minutes off."""
        rows: QuerySet[Model] = super().get_queryset(request).using(conf.current().DATABASE)
        return rows.annotate(now=Now())

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Our filters and nothing else: `?result__icontains=…` would read every row of the table."""
        return lookup in {known.parameter_name for known in self.list_filter}  # type: ignore[union-attr]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Every field on the page."""
        return flatten_fieldsets(self.fieldsets or ())

    def url_name(self, word: str, model: type[Model] | None = None) -> str:
        """The name of one of the addresses of `model`, or of what this is the admin of."""
        options = self.opts if model is None else model._meta
        return f"{options.app_label}_{options.model_name}_{word}"

    def address_of(self, word: str, *args: Any, model: type[Model] | None = None) -> str:
        """One of them, in the admin site that this page belongs to, whatever that is called."""
        name = f"admin:{self.url_name(word, model)}"
        return reverse(name, args=args, current_app=self.admin_site.name)

    def has_pages(self, model: type[Model]) -> bool:
        """Does this admin site show `model`? A project may register some of ours."""
        return self.admin_site.is_registered(model)

    def url_of(self, model: type[Model], pk: UUID | int | str) -> str:
        """The page of a row of `model`; of a model without pages in this site, the site's first page."""
        if self.has_pages(model):
            return self.address_of("change", pk, model=model)
        return reverse("admin:index", current_app=self.admin_site.name)

    def link_to(self, model: type[Model], pk: UUID, text: str) -> str:
        """A link to that page, where there is one."""
        if not self.has_pages(model):
            return text
        return format_html('<a href="{}">{}</a>', self.url_of(model, pk), text)

    def page(self, request: HttpRequest, template: str, title: str, **context: Any) -> HttpResponse:
        """A page of this admin that is none of Django's."""
        request.current_app = self.admin_site.name
        common = {
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "crumbs": self.crumbs(),
            "is_list": django.VERSION >= (6, 0),
        }
        return TemplateResponse(
            request,
            f"admin/tasks_app/{template}",
            {**self.admin_site.each_context(request), **common, **context},
        )

    def crumbs(self) -> list[dict[str, str]]:
        """What leads from the site's first page to one of those."""
        app = reverse(
            "admin:app_list", args=[self.opts.app_label], current_app=self.admin_site.name
        )
        return [
            {"url": app, "text": str(self.opts.app_config.verbose_name)},
            {
                "url": self.address_of("changelist"),
                "text": capfirst(str(self.opts.verbose_name_plural)),
            },
        ]

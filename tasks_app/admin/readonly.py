"""The base of our admin pages: rows are looked at, never written."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

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

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows of the tasks' database, each with `now` by its clock: the application's may be minutes off."""
        rows: QuerySet[Model] = super().get_queryset(request).using(conf.current().DATABASE)
        return rows.annotate(now=Now())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Every field on the page."""
        return flatten_fieldsets(self.fieldsets or ())

    def url_of(self, model: type[Model], pk: UUID | int) -> str:
        """The page of a row of `model`, in the admin site that this page belongs to."""
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
        return reverse(name, args=[pk], current_app=self.admin_site.name)

    def link_to(self, model: type[Model], pk: UUID, text: str) -> SafeString:
        """A link to that page."""
        return format_html('<a href="{}">{}</a>', self.url_of(model, pk), text)

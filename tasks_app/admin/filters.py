"""Filters whose choices are known without asking the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app import catalogue
from tasks_app.models.status import TaskStatus


class Exact(SimpleListFilter):
    """Keeps the rows whose `field` is the value chosen. A value that is no choice (a renamed task) works as well."""

    field: str

    def known(self) -> Iterator[tuple[str, str]]:
        """The choices, each with its label."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """What is known, and what the address asks for."""
        choices = list(self.known())
        chosen = self.value()
        if chosen and chosen not in dict(choices):
            choices.append((chosen, chosen))
        return choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows that match exactly."""
        chosen = self.value()
        if not chosen:
            return queryset
        return queryset.none() if "\x00" in chosen else queryset.filter(**{self.field: chosen})


class StatusFilter(Exact):
    """By status."""

    title, parameter_name, field = "status", "status", "status"

    def known(self) -> Iterator[tuple[str, str]]:
        """The five statuses."""
        return iter(TaskStatus.choices)


class TypeFilter(Exact):
    """By type, as declared in this process."""

    title, parameter_name, field = "type", "type", "name"

    def known(self) -> Iterator[tuple[str, str]]:
        """The names in the catalogue."""
        return ((task.name, task.name) for task in catalogue.known())


class QueueFilter(Exact):
    """By queue, as declared in this process."""

    title, parameter_name, field = "queue", "queue", "queue"

    def known(self) -> Iterator[tuple[str, str]]:
        """The queues that tasks in the catalogue name."""
        queues = {queue for task in catalogue.known() for queue in (task.queue, *task.queues)}
        return ((queue, queue) for queue in sorted(queues))

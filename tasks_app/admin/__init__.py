"""Monitoring in Django's admin: everything can be read, nothing edited; what an action changes, the store changes."""

from django.contrib import admin

from tasks_app.admin.centre import DeliveryAdmin, InboxEntryAdmin
from tasks_app.admin.orders import OrderAdmin
from tasks_app.admin.overview import OverviewAdmin
from tasks_app.admin.schedules import ScheduleAdmin
from tasks_app.admin.tasks import TaskAdmin
from tasks_app.admin.tokens import TokenAdmin
from tasks_app.admin.workers import WorkerProcessAdmin
from tasks_app.models import (
    Delivery,
    InboxEntry,
    Order,
    Overview,
    Schedule,
    Task,
    Token,
    WorkerProcess,
)

__all__ = [
    "DeliveryAdmin",
    "InboxEntryAdmin",
    "OrderAdmin",
    "OverviewAdmin",
    "ScheduleAdmin",
    "TaskAdmin",
    "TokenAdmin",
    "WorkerProcessAdmin",
]

admin.site.register(Order, OrderAdmin)
admin.site.register(Overview, OverviewAdmin)
admin.site.register(Task, TaskAdmin)
admin.site.register(Schedule, ScheduleAdmin)
admin.site.register(InboxEntry, InboxEntryAdmin)
admin.site.register(Delivery, DeliveryAdmin)
admin.site.register(Token, TokenAdmin)
admin.site.register(WorkerProcess, WorkerProcessAdmin)

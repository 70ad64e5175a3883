"""Monitoring in Django's admin: everything can be read, nothing edited; what an action changes, the store changes."""

from django.contrib import admin

from tasks_app.admin.schedules import ScheduleAdmin
from tasks_app.admin.tasks import TaskAdmin
from tasks_app.admin.workers import WorkerProcessAdmin
from tasks_app.models import Schedule, Task, WorkerProcess

__all__ = ["ScheduleAdmin", "TaskAdmin", "WorkerProcessAdmin"]

admin.site.register(Task, TaskAdmin)
admin.site.register(Schedule, ScheduleAdmin)
admin.site.register(WorkerProcess, WorkerProcessAdmin)

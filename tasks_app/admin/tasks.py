"""Tasks in the admin: their list, their pages, and what can be done to them."""

from __future__ import annotations

from tasks_app.admin.orders import OrderingAdmin
from tasks_app.admin.task_actions import TaskActions
from tasks_app.admin.task_page import TaskPage


class TaskAdmin(TaskPage, TaskActions, OrderingAdmin):
    """Tasks, newest first."""

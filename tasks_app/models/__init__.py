"""Rows and their constraints."""

from tasks_app.models.event import TaskEvent
from tasks_app.models.task import Task
from tasks_app.models.worker import WorkerProcess

__all__ = ["Task", "TaskEvent", "WorkerProcess"]

"""What has no rows of its own, and a place in the admin."""

from __future__ import annotations

from tasks_app.models.task import Task


class Overview(Task):
    """All tasks at a glance. Who may view tasks may see it."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = "overview"

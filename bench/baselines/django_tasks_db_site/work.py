"""The task."""

from __future__ import annotations

import django

from bench.tally import count

if django.VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task


@task
def nothing() -> None:
    """Counts itself."""
    count()

"""Enqueues tasks, one by one: the interface has nothing for several."""

from __future__ import annotations

import django

from bench.producing import serve


def _enqueue(count: int) -> None:
    from bench.baselines.django_tasks_db_site.work import nothing

    for _ in range(count):
        nothing.enqueue()


if __name__ == "__main__":
    django.setup()
    serve(_enqueue)

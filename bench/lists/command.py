"""The command line of `python -m bench lists`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any
from urllib.parse import urljoin

import django

from asyncpoll import environment as django_environment
from bench.database import databases
from bench.errors import BenchError
from bench.figures import in_turns
from bench.lists.filling import OWNER, RARE_TYPE, fill
from bench.machine import describe
from bench.options import add_common, numbers, write_json
from bench.project import environment
from bench.store import StoreConnection
from bench.verdicts import Verdict, table

_AIM_MS = 300.0
_WARM_UPS = 2
_ROUNDS = 7
_LIST = "/admin/tasks_app/task/"
_PAGES = {
    "newest": "",
    "a page in the middle": "?p={middle}",
    "status SUCCESS": "?status=SUCCESS",
    "status FAILED": "?status=FAILED",
    "status RUNNING": "?status=RUNNING",
    "status CANCELLED, of which there are none": "?status=CANCELLED",
    "type": "?type=bench.type_7",
    "type that is rare": f"?type={RARE_TYPE}",
    "type, queue and status": "?type=bench.type_7&queue=queue-1&status=FAILED",
    "search by id": "?q={large}",
    "search by type": f"?q=type:{RARE_TYPE}",
    "search by owner": f"?q=owner:{OWNER}",
    "search by owner, FAILED": f"?q=owner:{OWNER}&status=FAILED",
    "search for anything": "?q=nothing-is-called-so",
    "a task with a result of 10 MB": "{large}/change/",
    "overview, measured anew": "/admin/tasks_app/overview/",
    "how long to wait": "/admin/tasks_app/overview/plan/?days=30&hours_per_day=8",
    "act on all that are FAILED": "order/?status=FAILED",
    "act on all that are FAILED, of one type": "order/?status=FAILED&type=bench.type_1",
    "act on all that wait": "order/?status=PENDING",
    "act on all that run": "order/?status=RUNNING",
    "act on all of an owner": f"order/?q=owner:{OWNER}",
    "act on all of a status, of which there are too many": "order/?status=SUCCESS",
    "workers": "/admin/tasks_app/workerprocess/",
}


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians in milliseconds by page, beside so many `tasks`."""

    tasks: int
    pages: dict[str, float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--tasks",
        type=numbers(most=100_000_000),
        default=[50_000, 5_000_000],
        metavar="N,N",
        help="tasks in the table (50000,5000000; a million takes half a minute to write)",
    )
    add_common(parser)


def run(options: argparse.Namespace) -> None:
    """Measure, print the table, write the JSON."""
    with databases() as databases_, ExitStack() as stack:
        urls = [stack.enter_context(databases_.fresh()) for _ in options.tasks]
        os.environ.update(environment(urls[0]))
        django.setup()
        sites = [_Site(url, count) for url, count in zip(urls, options.tasks, strict=True)]
        for site in in_turns(sites, _WARM_UPS + _ROUNDS * options.repeat):
            site.round()
        figures = [site.figures() for site in sites]
        notes = [describe(("Django", "psycopg")), f"Postgres {databases_.note}"]
    most = figures[-1]
    verdicts = [
        Verdict(f"{page}, ms", "≤", _AIM_MS, f"{most.tasks:,}", took, is_ratio=False)
        for page, took in most.pages.items()
    ]
    print("\n\n".join("\n".join(part) for part in (_rows(figures), table(verdicts), notes)))
    found: dict[str, Any] = {"notes": notes, "figures": [asdict(each) for each in figures]}
    write_json(options.json, found | {"aims": [verdict.as_json() for verdict in verdicts]})


class _Site:
    """The admin over one of the databases, for somebody who may do everything."""

    def __init__(self, url: str, tasks: int) -> None:
        from django.contrib.auth.models import User
        from django.test import Client

        self._url = url
        self._tasks = tasks
        self._took: dict[str, list[float]] = {page: [] for page in _PAGES}
        with closing(StoreConnection(url)) as store:
            self._landmarks = asdict(fill(store, tasks))
        self._client = Client(SERVER_NAME="localhost", SERVER_PORT="80")
        with self._connected():
            self._client.force_login(User.objects.create_superuser("bench"))

    def round(self) -> None:
        """Ask for each page."""
        from tasks_app.admin import standing

        standing.kept = standing.Kept()
        with self._connected():
            for page, address in _PAGES.items():
                began = time.monotonic()
                answer = self._client.get(urljoin(_LIST, address.format(**self._landmarks)))
                self._took[page].append((time.monotonic() - began) * 1000)
                if answer.status_code != 200:
                    raise BenchError(f"{page}: {answer.status_code} beside {self._tasks:,} tasks.")

    def figures(self) -> Figures:
        """The medians of the rounds after the warm-up."""
        pages = {page: median(took[_WARM_UPS:]) for page, took in self._took.items()}
        return Figures(self._tasks, pages)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        from django.db import connection

        connection.close()
        connection.settings_dict.update(django_environment.database(self._url))
        yield
        connection.close()


def _rows(figures: Sequence[Figures]) -> list[str]:
    least = figures[0]
    lines = [
        f"| page | {' | '.join(f'{each.tasks:,} tasks' for each in figures)} |",
        f"|---|{'--:|' * len(figures)}",
    ]
    for page, of_least in least.pages.items():
        cells = [
            f"{each.pages[page]:.0f} ms ({each.pages[page] / of_least:.1f}×)" for each in figures
        ]
        lines.append(f"| {page} | {' | '.join(cells)} |")
    return lines

"""`asyncpoll watch`: a task's every milestone, until it is over."""

from __future__ import annotations

import argparse

from asyncpoll.cli import following, words
from asyncpoll.cli.exits import Exit
from asyncpoll.cli.screens import Nothing, screen
from asyncpoll.client import Answer, Client, Milestone

HELP = "print every milestone of a task until it is over, and its result"
_SHOWN = ("task_id", "version", "kind", "at", "attempt", "progress", "message", "data", "gap")


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to watch, and how long."""
    parser.add_argument(
        "task_id", metavar="ID", help="the task's id, or ID:VERSION to begin after that version"
    )
    following.add_options(parser)


def run(client: Client, options: argparse.Namespace) -> Exit:
    """Print what has happened and what happens."""
    task_id, known = following.split(options.task_id)
    cursor, last = options.task_id, None
    with (
        following.going_on(lambda: f"watch {cursor}"),
        screen(following.is_silent(options), Nothing()) as shown,
    ):
        for milestone in client.watch(
            task_id, cursor=known, lifetime=options.lifetime, on_stale="retry"
        ):
            _print(milestone, options.json)
            cursor, last = f"{task_id}:{milestone.version}", milestone.answer
            shown.show(last)
    return following.finish(_ended(client, task_id, last), options)


def _ended(client: Client, task_id: str, last: Answer | None) -> Answer:
    """Of a task that was over before there was anything to tell, no milestone has brought the end."""
    return last if last and last.is_terminal else client.get(task_id)


def _print(milestone: Milestone, as_json: bool) -> None:
    if as_json:
        following.print_json({name: getattr(milestone, name) for name in _SHOWN})
    else:
        print(words.happened(milestone), flush=True)

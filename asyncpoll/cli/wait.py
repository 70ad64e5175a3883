"""`asyncpoll wait`: until tasks are over."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from asyncpoll.cli import following, words
from asyncpoll.cli.exits import Exit
from asyncpoll.cli.screens import screen
from asyncpoll.client import Answer, Client

HELP = "wait until tasks are over, and print their results"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to wait for, and how long."""
    parser.add_argument("task_ids", metavar="ID", nargs="+", help="the task's id, or ID:VERSION")
    parser.add_argument(
        "--notify",
        metavar="WHERE",
        help="on giving up, have the end of a single task told to the inbox, or to an https:// URL",
    )
    following.add_options(parser)


def run(client: Client, options: argparse.Namespace) -> Exit:
    """Wait for one, or for all of several over one connection."""
    if len(options.task_ids) == 1:
        return following.follow(client, options.task_ids[0], options)
    task_ids = list(dict.fromkeys(following.split(one)[0] for one in options.task_ids))
    return _follow_all(client, task_ids, options)


def _follow_all(client: Client, task_ids: Sequence[str], options: argparse.Namespace) -> Exit:
    exits = [Exit.DONE]
    with (
        following.going_on(lambda: f"wait {' '.join(task_ids)}"),
        screen(following.is_silent(options)) as shown,
    ):
        shown.count(0, len(task_ids))
        for ended, answer in enumerate(
            client.as_completed(task_ids, lifetime=options.lifetime), start=1
        ):
            exits.append(_finish(answer, options))
            shown.count(ended, len(task_ids))
    return max(exits)


def _finish(answer: Answer, options: argparse.Namespace) -> Exit:
    """As for a single one, but a result is on one line with its task."""
    if options.json or not answer.succeeded:
        return following.finish(answer, options)
    print(answer.task_id, words.document(answer.result), flush=True)
    return Exit.DONE

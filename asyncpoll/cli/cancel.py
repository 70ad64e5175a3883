"""`asyncpoll cancel`: ask for the end of tasks."""

from __future__ import annotations

import argparse

from asyncpoll.cli import following, words
from asyncpoll.cli.exits import Exit
from asyncpoll.client import Answer, Client

HELP = "ask tasks to end; those that do not run yet end at once"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which ones."""
    parser.add_argument("task_ids", metavar="ID", nargs="+", help="the task's id")


def run(client: Client, options: argparse.Namespace) -> Exit:
    """Ask for each, in turn, and say where it is now."""
    for task_id in options.task_ids:
        answer = client.cancel(task_id)
        if options.json:
            following.print_json(answer.raw)
        else:
            print(words.clean(answer.task_id), _said(answer), flush=True)
    return Exit.DONE


def _said(answer: Answer) -> str:
    return words.standing(answer) if answer.is_terminal else f"{answer.status}, asked to stop"

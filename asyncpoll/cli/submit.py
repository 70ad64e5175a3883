"""`asyncpoll submit`: a new task, and if wanted its result."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any
from uuid import uuid4

from asyncpoll.cli import following, words
from asyncpoll.cli.arguments import keyword_arguments
from asyncpoll.cli.exits import Exit
from asyncpoll.cli.interrupts import before_leaving
from asyncpoll.client import Answer, Client

HELP = "submit a task and print its id, or with --wait its result"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The task, its arguments, and what may be asked for with it."""
    parser.add_argument("task", metavar="TASK", help="the task's name")
    parser.add_argument(
        "words",
        metavar="NAME=VALUE",
        nargs="*",
        help="an argument: limit=3, name=text, list='[1, 2]'; what is no JSON is text",
    )
    parser.add_argument(
        "--kwargs", metavar="JSON", help="arguments as a JSON object; - reads it from stdin"
    )
    parser.add_argument("--queue", help="instead of the task's own")
    parser.add_argument("--priority", type=int, help="from -100 up to the task's own")
    parser.add_argument("--run-at", metavar="TIME", help="not before, such as 2026-01-31T09:30Z")
    parser.add_argument(
        "--idempotency-key",
        metavar="KEY",
        help="the same command with the same key stands for one task, however often it is given",
    )
    parser.add_argument(
        "--notify", metavar="WHERE", help="have the end told to the inbox, or to an https:// URL"
    )
    parser.add_argument("--wait", action="store_true", help="wait for the end, as `wait` does")
    following.add_options(parser)


def run(client: Client, options: argparse.Namespace) -> Exit:
    """Submit; then wait, or print what was submitted."""
    answer = _submit(client, options, keyword_arguments(options.kwargs, options.words))
    if options.wait:
        return following.follow(client, answer.task_id, options)
    if options.json:
        following.print_json(answer.raw)
    else:
        print(words.clean(answer.task_id), flush=True)
    return Exit.DONE


def _submit(client: Client, options: argparse.Namespace, arguments: dict[str, Any]) -> Answer:
    key = str(uuid4()) if options.idempotency_key is None else options.idempotency_key

    def stopped() -> None:
        print(
            "Stopped; whether the task is stored is not known. Submit it again with --idempotency-key "
            f"{shlex.quote(key)}, with which it is one task.",
            file=sys.stderr,
            flush=True,
        )

    with before_leaving(stopped):
        return client.submit(
            options.task,
            kwargs=arguments,
            queue=options.queue,
            priority=options.priority,
            run_at=options.run_at,
            idempotency_key=key,
            notify=options.notify,
            lifetime=options.lifetime,
        )

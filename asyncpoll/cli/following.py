"""Waiting for an end, and saying what it was."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from asyncpoll.cli import words
from asyncpoll.cli.errors import GaveUp
from asyncpoll.cli.exits import Exit
from asyncpoll.cli.interrupts import before_leaving
from asyncpoll.cli.parsing import seconds
from asyncpoll.cli.screens import screen
from asyncpoll.client import Answer, Client, PollLifetimeExceeded, Unreachable

_NO_ANSWER = "No answer has come; look whether the server is well, and whether --url or ASYNCPOLL_URL names it."


def add_options(parser: argparse.ArgumentParser) -> None:
    """What a command that waits can be told."""
    parser.add_argument(
        "--lifetime",
        type=seconds,
        metavar="SECONDS",
        help="give up waiting after so long (600), and submitting (60); a task that was submitted goes on",
    )


def follow(client: Client, cursor: str, options: argparse.Namespace) -> Exit:
    """Wait for one task, by its id or from a cursor, and print its result."""
    task_id, known = split(cursor)
    with going_on(lambda: f"wait {task_id}"), screen(is_silent(options)) as shown:
        answer = client.wait(
            task_id,
            cursor=known,
            lifetime=options.lifetime,
            on_change=shown.show,
            notify=options.notify,
            on_stale="retry",
        )
    return finish(answer, options)


def is_silent(options: argparse.Namespace) -> bool:
    """True if nothing is to be said while a wait goes on."""
    return bool(options.quiet or options.json)


@contextmanager
def going_on(command: Callable[[], str]) -> Iterator[None]:
    """However a wait within it ends before its task does, say how to go on with it. Raises GaveUp."""

    def stopped() -> None:
        print(
            f"Stopped waiting; what was submitted goes on. See it again with: asyncpoll {command()}",
            file=sys.stderr,
            flush=True,
        )

    try:
        with before_leaving(stopped):
            yield
    except PollLifetimeExceeded as error:
        goes_on = error.for_user if error.answer is not None else _NO_ANSWER
        raise GaveUp(
            f"Gave up {error.reason}. {goes_on} See it again with: asyncpoll {command()}"
        ) from error
    except Unreachable as error:
        raise GaveUp(f"{error}. Go on with: asyncpoll {command()}") from error


def split(cursor: str) -> tuple[str, str | None]:
    """The task, and the cursor if it is one."""
    task_id, colon, _ = cursor.partition(":")
    return task_id, cursor if colon else None


def finish(answer: Answer, options: argparse.Namespace) -> Exit:
    """Print how a task ended: its result on stdout, why it has none on stderr."""
    if options.json:
        print_json(answer.raw)
    elif answer.succeeded:
        print(words.document(answer.result, indent=2), flush=True)
    else:
        print(words.failure(answer), file=sys.stderr)
    return Exit.DONE if answer.succeeded else Exit.FAILED


def print_json(value: object) -> None:
    """One line of JSON on stdout, at once."""
    print(words.document(value), flush=True)

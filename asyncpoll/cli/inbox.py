"""`asyncpoll inbox`: the ends that somebody asked to be told of."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from asyncpoll.cli import following, words
from asyncpoll.cli.exits import Exit
from asyncpoll.cli.parsing import seconds
from asyncpoll.client import Client, InboxEntry

HELP = "list the ends that are not acknowledged, or acknowledge them"
# Between two looks into an empty inbox: a server that goes away answers at once.
_PAUSE_SECONDS = 1.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Whether to wait, and what to acknowledge."""
    parser.add_argument(
        "--wait",
        type=seconds,
        metavar="SECONDS",
        default=0.0,
        help="wait so long for one if there is none; exit code 2 if none came",
    )
    parser.add_argument(
        "--ack", metavar="ENTRY", nargs="+", default=(), help="acknowledge these entries instead"
    )
    parser.add_argument("--ack-all", action="store_true", help="acknowledge what is listed")


def run(client: Client, options: argparse.Namespace) -> Exit:
    """Acknowledge what is named, or list what there is."""
    for entry_id in options.ack:
        client.acknowledge(entry_id)
    if options.ack:
        return Exit.DONE
    entries = _entries(client, options.wait)
    for entry in entries:
        _print(entry, options.json)
        if options.ack_all:
            client.acknowledge(entry)
    return Exit.DONE if entries or not options.wait else Exit.GAVE_UP


def _entries(client: Client, patience: float) -> Sequence[InboxEntry]:
    """What is there, or comes soon enough; a server holds no longer than it wants."""
    deadline = time.monotonic() + patience
    while not (entries := client.inbox(max(0.0, deadline - time.monotonic()))):
        if time.monotonic() >= deadline:
            break
        time.sleep(min(_PAUSE_SECONDS, max(0.0, deadline - time.monotonic())))
    return entries


def _print(entry: InboxEntry, as_json: bool) -> None:
    if as_json:
        following.print_json(entry.raw)
    else:
        print(*map(words.clean, (entry.id, entry.task_id, entry.status)), flush=True)

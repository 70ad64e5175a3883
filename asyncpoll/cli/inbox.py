"""`asyncpoll inbox`: the ends that somebody asked to be told of."""

from __future__ import annotations

import argparse

from asyncpoll.cli import following, words
from asyncpoll.cli.exits import Exit
from asyncpoll.cli.parsing import seconds
from asyncpoll.client import Client, InboxEntry

HELP = "list the ends that are not acknowledged, or acknowledge them"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Whether to wait, and what to acknowledge."""
    parser.add_argument(
        "--wait",
        type=seconds,
        metavar="SECONDS",
        default=0.0,
        help="wait so long for one if there is none",
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
    for entry in client.inbox(options.wait):
        _print(entry, options.json)
        if options.ack_all:
            client.acknowledge(entry)
    return Exit.DONE


def _print(entry: InboxEntry, as_json: bool) -> None:
    if as_json:
        following.print_json(entry.raw)
    else:
        print(entry.id, entry.task_id, words.clean(str(entry.raw.get("status", ""))), flush=True)

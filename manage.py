#!/usr/bin/env python
"""Django's command line. Commands that need a database get the embedded one if DATABASE_URL is not set."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from asyncpoll import embedded, streams

# Whatever is not listed may query. `up` looks after its server itself.
_WITHOUT_DATABASE = {
    "check",
    "collectstatic",
    "compilemessages",
    "diffsettings",
    "findstatic",
    "help",
    "makemessages",
    "startapp",
    "startproject",
    "up",
    "version",
}


def main(argv: list[str]) -> None:
    """Run the management command of the command line `argv`."""
    streams.open_closed_ones()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "asyncpoll.settings")
    _choose_data_dir(argv)
    if _needs_database(argv):
        _provide_database()
    try:
        execute_from_command_line(argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))


def _choose_data_dir(argv: list[str]) -> None:
    # Settings look for the secret key there, before Django parses the arguments of `up`.
    if argv[1:2] == ["up"]:
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--data-dir")
        chosen = parser.parse_known_args(argv[2:])[0].data_dir
        if chosen:
            os.environ["ASYNCPOLL_DATA_DIR"] = str(Path(chosen).absolute())


def _needs_database(argv: list[str]) -> bool:
    asks_for_help = {"-h", "--help"} & set(argv)
    if len(argv) < 2 or asks_for_help:
        return False
    command = argv[1]
    if command == "check":
        return any(word.startswith("--database") for word in argv)
    return not command.startswith("-") and command not in _WITHOUT_DATABASE


def _provide_database() -> None:
    try:
        embedded.ensure_database_url()
    except embedded.EmbeddedError as error:
        sys.exit(str(error))
    # For dbshell, where the machine has no psql of its own.
    os.environ["PATH"] = os.pathsep.join(
        [os.environ.get("PATH", os.defpath), str(embedded.installed())]
    )


if __name__ == "__main__":
    main(sys.argv)

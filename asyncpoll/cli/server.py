"""Which server a command asks, and with what credentials."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from asyncpoll.cli import words
from asyncpoll.cli.errors import UsageError
from asyncpoll.client import Attempt, Client

URL_VARIABLE = "ASYNCPOLL_URL"
TOKEN_VARIABLE = "ASYNCPOLL_TOKEN"  # noqa: S105 - the variable's name


def add_options(parser: argparse.ArgumentParser) -> None:
    """`--url` and `--token-file`."""
    parser.add_argument(
        "--url", help=f"where the server is, such as https://example.org; else {URL_VARIABLE}"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"file with the token to send; else {TOKEN_VARIABLE}, if that is set",
    )
    parser.add_argument("--token", type=_refused, help=argparse.SUPPRESS)


def client(options: argparse.Namespace) -> Client:
    """A client for the server. Raises UsageError, and Misused for an address that is none."""
    url = options.url or os.environ.get(URL_VARIABLE)
    if not url:
        raise UsageError(
            f"No server is named; give --url, such as --url http://127.0.0.1:8000, or set {URL_VARIABLE}."
        )
    hooks = () if options.quiet else (_tell,)
    return Client(url, token=_token(options.token_file), hooks=hooks)


def _tell(attempt: Attempt) -> None:
    """Say what kept an attempt from its answer, and that there will be another. What ends all attempts begins with the
    request, and is said at the end."""
    if attempt.error and not attempt.error.startswith(f"{attempt.method} "):
        again = "" if attempt.next_in is None else f"; trying again in {attempt.next_in:.1f} s"
        said = f"No answer to try {attempt.number}: {words.clean(attempt.error)}{again}"
        print(said, file=sys.stderr, flush=True)


def _refused(token: str) -> None:
    raise argparse.ArgumentTypeError(
        f"everybody on this machine can read command lines; set {TOKEN_VARIABLE}, or give --token-file FILE"
    )


def _token(file: str | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(
            f"The token file {file} can't be read ({reason}); name a file with nothing but the token."
        ) from None
    if not token:
        raise UsageError(f"The token file {file} is empty; put the token into it.")
    return token

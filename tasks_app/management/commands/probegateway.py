"""manage.py probegateway: how long may an answer wait behind this gateway?"""

from __future__ import annotations

import asyncio
import math
from argparse import ArgumentTypeError
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import NoReverseMatch, reverse

from asyncpoll.probing import Finding, ProbeFailed, measure
from tasks_app import conf
from tasks_app.api.probe import LONGEST_SECONDS, probe_ticket


class Command(BaseCommand):
    """Parses the arguments, and says what was found."""

    help = (
        "Measure how long whatever stands in front of a running server lets an answer wait, and print the "
        "MAX_HOLD_SECONDS to set. Run it with the server's settings; it holds a few requests and stores nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "url", type=_url, help="what clients use, for example https://example.org"
        )
        parser.add_argument(
            "--most",
            type=_seconds,
            default=75.0,
            help="longest hold to try, in seconds; it takes up to twice as long (75)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure; exit code 1 and one sentence if that can't be."""
        try:
            url = options["url"] + reverse("asyncpoll:probe")
        except NoReverseMatch as error:
            raise CommandError(
                'This project does not serve the API: add path("api/v1/", include("tasks_app.api.urls")).'
            ) from error
        try:
            found = asyncio.run(measure(url, probe_ticket(), options["most"], self.stdout.write))
        except ProbeFailed as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_report(found, conf.current().MAX_HOLD_SECONDS))


def _report(found: Finding, now_seconds: float) -> str:
    best = found.hold_seconds
    now = f"ASYNCPOLL['MAX_HOLD_SECONDS'] is {now_seconds:g}"
    if found.cut_seconds is None:
        said = f"Nothing cut an answer within {found.answered_seconds:g} s."
    else:
        said = f"Answers are cut after {found.cut_seconds:.1f} s ({found.cut_by}); {best:g} s were answered each time."
    if now_seconds <= best:
        return f"{said}\n{now}, which fits; up to {best:g} would."
    if found.cut_seconds is None:
        return (
            f"{said}\n{now}; whether that fits is not known, as nothing was tried beyond "
            f"{found.answered_seconds:g} s. --most {math.ceil(now_seconds * 6 / 5)} tells."
        )
    return (
        f"{said}\n{now}, which is too much. Set it to {best:g}; with asyncpoll's own settings:\n\n"
        f"    ASYNCPOLL_MAX_HOLD_SECONDS={best:g}\n"
    )


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ArgumentTypeError(f"{text!r} is no address; give one such as https://example.org")
    return text.rstrip("/")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise ArgumentTypeError(
            f"{text!r} is not a number of seconds from 1 to {LONGEST_SECONDS:g}"
        )
    return seconds

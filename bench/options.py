"""Options that benchmarks have in common."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def add_common(parser: argparse.ArgumentParser) -> None:
    """Declare --repeat and --json."""
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="rounds; medians are shown (%(default)s)"
    )
    write_to(parser)


def write_to(parser: argparse.ArgumentParser) -> None:
    """Declare --json."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")


def numbers(most: int, why: str = "") -> Callable[[str], list[int]]:
    """A parser of numbers from 1 to `most`, separated by commas."""

    def parse(text: str) -> list[int]:
        parts = text.split(",")
        if not all(part.isdigit() and 1 <= int(part) <= most for part in parts):
            raise argparse.ArgumentTypeError(
                f"{text!r} must be numbers from 1 to {most:,}, separated by commas{why}"
            )
        return [int(part) for part in parts]

    return parse


def names(known: Sequence[str]) -> Callable[[str], list[str]]:
    """A parser of some of the `known` names, separated by commas."""

    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = sorted(set(chosen) - set(known))
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return chosen

    return parse


def or_none(parse: Callable[[str], list[Any]]) -> Callable[[str], list[Any]]:
    """The same parser, which also takes `none`."""
    return lambda text: [] if text == "none" else parse(text)


def say(line: str) -> None:
    """How far it is, at once, beside the report."""
    print(line, file=sys.stderr, flush=True)


def write_json(file: Path | None, content: dict[str, Any]) -> None:
    """Write a report, if it was asked for."""
    if file is not None:
        text = json.dumps(content, indent=2, ensure_ascii=False)
        file.write_text(f"{text}\n", encoding="utf-8")

"""A task's arguments, from words on the command line and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from asyncpoll.cli.errors import UsageError

_STDIN = "-"


def keyword_arguments(document: str | None, words: Iterable[str]) -> dict[str, Any]:
    """The JSON object `document` ("-": on stdin) with what each `name=value` of `words` adds.

    A value that is JSON means what it says, any other is text. Raises UsageError for a name that is given twice.
    """
    arguments = _object(document) if document is not None else {}
    for word in words:
        name, value = _pair(word)
        if name in arguments:
            raise UsageError(f"{name} is given twice; give each argument once.")
        arguments[name] = value
    return arguments


def _object(document: str) -> dict[str, Any]:
    text = document
    try:
        text = _read() if document == _STDIN else document
        value = _parsed(text)
    except ValueError as error:
        raise UsageError(
            f'--kwargs is not JSON ({error}); give an object such as {{"limit": 3}}.'
        ) from None
    if not isinstance(value, dict):
        raise UsageError(
            f'--kwargs is {text.strip()[:60]!r}; it must be a JSON object such as {{"limit": 3}}.'
        )
    return value


def _read() -> str:
    if sys.stdin is None:
        raise UsageError("stdin is closed; give --kwargs a JSON object.")
    return sys.stdin.read()


def _pair(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if not equals or not name:
        raise UsageError(f"{word!r} is no argument; write name=value, such as limit=3.")
    try:
        return name, _parsed(text)
    except ValueError:
        return name, text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")

"""Checking arguments from outside against a JSON Schema, within bounds: whoever sends them also picks the worst ones."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from tasks_app.errors import InvalidArguments, InvalidTask
from tasks_app.schemapatterns import Keyword, linear, refuse_unmatchable

MOST_SECONDS = 10.0
"""Of processor time for one check. A megabyte of numbers takes three; one that needs more is asked for more with each level."""
_MOST_UNEVALUATED = 5_000
_MOST_ERRORS = 20
_MESSAGE_CHARACTERS = 300
_SHOWN_CHARACTERS = 60


def make_validator(name: str, schema: Mapping[str, Any]) -> Validator:
    """What checks the arguments of task `name`. Raises InvalidTask for what is no JSON Schema, or can't be bounded."""
    kind = validator_for(dict(schema), default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise InvalidTask(
            f"Task {name!r}: its schema is no JSON Schema: {error.message} at {error.json_path}."
        ) from None
    refuse_unmatchable(name, schema)
    keywords = {**linear(kind.VALIDATORS), "uniqueItems": _unique_items}
    for word in ("unevaluatedItems", "unevaluatedProperties"):
        if word in keywords:
            keywords[word] = _unless_too_many(keywords[word])
    bounded = extend(kind, {word: _bounded(keyword) for word, keyword in keywords.items()})
    # A registry of its own, since the default one fetches what a $ref names from the network.
    return bounded(dict(schema), registry=Registry())


def validate(name: str, validator: Validator, arguments: Any) -> None:
    """Raise InvalidArguments, with the most telling of what is wrong first, unless `arguments` fit."""
    _clock.ends_at = time.thread_time() + MOST_SECONDS
    try:
        # Of the first errors only: half a million wrong numbers have as many, and finding them takes seconds.
        error = best_match(islice(validator.iter_errors(arguments), _MOST_ERRORS))
    except Unresolvable as unresolvable:
        raise InvalidArguments(
            f"{name}: its schema refers to {unresolvable.ref!r}, which is not in it; put it under $defs."
        ) from None
    except RecursionError:
        raise InvalidArguments(
            f"{name}: its arguments are nested too deeply to be checked; nest them a few hundred levels at most."
        ) from None
    except _TooMany as many:
        raise InvalidArguments(
            f"{name}: {many} members are too many for a schema that asks which of them no other part of it has looked "
            f"at; send at most {_MOST_UNEVALUATED:,} in one array or object."
        ) from None
    except _OutOfTime:
        raise InvalidArguments(
            f"{name}: checking its arguments took more than {MOST_SECONDS:g} s; send less, or nest it less."
        ) from None
    if error is not None:
        where = "in" if error.json_path == "$" else f"at {error.json_path} of"
        raise InvalidArguments(
            f"{name}: {error.message[:_MESSAGE_CHARACTERS]} {where} its arguments."
        )


class _OutOfTime(Exception):
    """The check has taken all the time it had."""


class _TooMany(Exception):
    """What is to be checked has too many members for how that is done."""


class _Clock(threading.local):
    """When this thread's check has to end, by its own processor time."""

    ends_at = math.inf


_clock = _Clock()


def _bounded(keyword: Keyword) -> Keyword:
    """The same, unless the time is up. Alternatives within alternatives double the work with each level."""

    def check(
        validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]
    ) -> Iterator[ValidationError] | None:
        if time.thread_time() > _clock.ends_at:
            raise _OutOfTime
        return keyword(validator, value, instance, schema)

    return check


def _unless_too_many(keyword: Keyword) -> Keyword:
    """The same for so many members: the library looks each up in a list of all, in one step that no clock ends."""

    def check(
        validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]
    ) -> Iterator[ValidationError] | None:
        if isinstance(instance, list | dict) and len(instance) > _MOST_UNEVALUATED:
            raise _TooMany(f"{len(instance):,}")
        return keyword(validator, value, instance, schema)

    return check


def _unique_items(
    validator: Any, is_asked: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """The library's compares each with each where they can't be sorted."""
    if is_asked and validator.is_type(instance, "array"):
        seen = set()
        for item in instance:
            kind = _comparable(item)
            if kind in seen:
                yield ValidationError(f"{str(item)[:_SHOWN_CHARACTERS]} is there more than once")
                return
            seen.add(kind)


def _comparable(value: Any) -> Any:
    """What is equal for two values that JSON Schema calls equal. Numbers as text: of those, hashes can be made to collide."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float):
        return type(value).__name__, str(value)
    if isinstance(value, dict):
        return frozenset((key, _comparable(part)) for key, part in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_comparable, value))
    return value

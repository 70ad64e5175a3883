"""Patterns of JSON Schemas, matched in linear time: `re` can take exponential time, in one call that nothing ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jsonschema.exceptions import ValidationError
from pydantic_core import SchemaError, SchemaValidator, core_schema

from tasks_app.errors import InvalidTask

# What a keyword of a schema does: gives what is wrong, if anything.
Keyword = Callable[[Any, Any, Any, Mapping[str, Any]], Iterator[ValidationError] | None]

_SHOWN_CHARACTERS = 60


def refuse_unmatchable(name: str, schema: Mapping[str, Any]) -> None:
    """Raise InvalidTask for a pattern in the schema of task `name` that can't be matched in linear time."""
    words: set[str] = set()
    for part in _parts(schema):
        words |= part.keys()
        for pattern in _patterns_of(part):
            try:
                _matcher(pattern)
            except SchemaError as error:
                reason = str(error).splitlines()[-1].strip().removeprefix("error: ").rstrip(".")
                raise InvalidTask(
                    f"Task {name!r}: pattern {pattern[:_SHOWN_CHARACTERS]!r} of its schema can't be matched in linear "
                    f"time: {reason}. Write it for Rust's regex, without look-around and back-references; allOf joins "
                    "several patterns."
                ) from None
    if {"patternProperties", "unevaluatedProperties"} <= words:
        raise InvalidTask(
            f"Task {name!r}: its schema has patternProperties and unevaluatedProperties, which can't be checked "
            "together in linear time; use additionalProperties, or name the properties."
        )


def linear(keywords: Mapping[str, Keyword]) -> dict[str, Keyword]:
    """The library's keywords, with those that match patterns in place of its own."""
    ours: dict[str, Keyword] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    if (additional := keywords.get("additionalProperties")) is not None:
        ours["additionalProperties"] = _beside_patterns(additional)
    return {**keywords, **{word: keyword for word, keyword in ours.items() if word in keywords}}


@lru_cache(maxsize=1_000)
def _matcher(pattern: str) -> SchemaValidator:
    # pydantic has Rust's regex engine with it, which searches, as JSON Schema asks for.
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def _matches(pattern: str, text: str) -> bool:
    return _matcher(pattern).isinstance_python(text)


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in it; one that is no schema but a value has no patterns, as a rule."""
    if isinstance(schema, Mapping):
        yield schema
        schema = schema.values()
    elif not isinstance(schema, list | tuple):
        return
    for part in schema:
        yield from _parts(part)


def _patterns_of(part: Mapping[str, Any]) -> list[str]:
    of_names = part.get("patternProperties")
    found = [*of_names] if isinstance(of_names, Mapping) else []
    return [*found, part["pattern"]] if isinstance(part.get("pattern"), str) else found


def _pattern(
    validator: Any, pattern: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield ValidationError(f"{instance[:_SHOWN_CHARACTERS]!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, part in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def _beside_patterns(additional: Keyword) -> Keyword:
    """The same, where the names that patterns describe are taken for properties."""

    def check(
        validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]
    ) -> Iterator[ValidationError] | None:
        known = dict(schema.get("properties", {}))
        if validator.is_type(instance, "object"):
            for pattern in schema.get("patternProperties", ()):
                known |= {name: True for name in instance if _matches(pattern, name)}
        return additional(validator, value, instance, {"properties": known})

    return check

"""Arguments are checked against a schema within bounds, whatever the schema and whoever sent them."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app import jsonschemas
from tasks_app.errors import InvalidArguments, InvalidTask
from tasks_app.jsonschemas import make_validator, validate


def check(schema: dict[str, Any], arguments: Any) -> None:
    validate("sample", make_validator("sample", schema), arguments)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


# Each level of the arguments is looked at twice, and so is each below it.
DOUBLING = {
    "anyOf": [
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "array", "items": {"$ref": "#"}, "maxItems": 9},
        {"type": "string"},
    ]
}


def test_alternatives_within_alternatives_are_given_up(monkeypatch: Any) -> None:
    """Sixty levels would take longer than anybody lives."""
    monkeypatch.setattr(jsonschemas, "MOST_SECONDS", 0.2)
    with pytest.raises(InvalidArguments, match=r"took more than 0.2 s; send less, or nest it less"):
        check(DOUBLING, nested(60))
    with pytest.raises(InvalidArguments, match="not valid under any of the given schemas"):
        check(DOUBLING, nested(3))


def test_what_is_unique_is_found_without_comparing_each_with_each() -> None:
    """Two hundred million comparisons, where the values can't be sorted."""
    values = [[number] if number % 2 else {"a": number} for number in range(20_000)]
    check({"items": True, "uniqueItems": True}, values)
    with pytest.raises(InvalidArguments, match="is there more than once"):
        check({"uniqueItems": True}, [*values, {"a": 2}])


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        (1, 1.0, True), (1, True, False), (0, False, False), ("1", 1, False), (None, False, False), (1.5, 1.5, True),
        ([1], [1.0], True), ([1], [True], False), ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
        ({"a": 1}, {"a": True}, False), ([], {}, False), ({"a": 1}, [["a", 1]], False), (10**40, 10**40, True),
        ("a", "b", False), (["int", "1"], 1, False), (-0.0, 0, True), (float("inf"), 1.0, False),
    ],
)  # fmt: skip
def test_equal_is_what_json_schema_says(one: Any, other: Any, are_equal: bool) -> None:
    """Numbers by their value; true is not 1."""
    if are_equal:
        with pytest.raises(InvalidArguments, match="more than once"):
            check({"uniqueItems": True}, [one, other])
    else:
        check({"uniqueItems": True}, [one, other])


def test_numbers_that_collide_as_hashes_do_not_collide_here() -> None:
    """Every multiple of 2^61 - 1 has the hash 0, in every process."""
    check({"uniqueItems": True}, [number * (2**61 - 1) for number in range(20_000)])


@pytest.mark.parametrize(
    ("schema", "fits", "never"),
    [
        ({"pattern": "^(a+)+$"}, "aaa", "a" * 100_000 + "!"),
        ({"patternProperties": {"^(a+)+$": {"type": "string"}}}, {"b": 1}, {"aaa": 1}),
        (
            {"patternProperties": {"^(a+)+$": True}, "additionalProperties": False},
            {"aaa": 1},
            {"a" * 100_000 + "!": 1},
        ),
        ({"propertyNames": {"pattern": "^(a|aa)+$"}}, {"aaa": 1}, {"a" * 100_000 + "!": 1}),
        ({"pattern": "b"}, "abc", "ac"),
    ],
)
def test_every_pattern_takes_linear_time(schema: dict[str, Any], fits: Any, never: Any) -> None:
    """`re` would match the first ones for longer than anybody lives, in one call that nothing ends."""
    check(schema, fits)
    with pytest.raises(InvalidArguments):
        check(schema, never)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"properties": {"a": {"pattern": "(?=x)a"}}}, r"pattern '\(\?=x\)a' .*look-around.* is not supported"),
        ({"patternProperties": {r"(a)\1": True}}, "backreferences are not supported"),
        ({"anyOf": [True, {"not": {"pattern": "(a{1000}){1000}"}}]}, "exceeds size limit"),
        (
            {"patternProperties": {"^a": True}, "allOf": [{"unevaluatedProperties": False}]},
            "use additionalProperties, or name the properties",
        ),
    ],
)  # fmt: skip
def test_a_pattern_that_can_not_be_matched_in_linear_time_is_not_declared(
    schema: dict[str, Any], says: str
) -> None:
    """Wherever in the schema it is; with what to write instead."""
    with pytest.raises(InvalidTask, match=says):
        make_validator("sample", schema)


@pytest.mark.parametrize(
    ("schema", "few", "many"),
    [
        (
            {"allOf": [{"items": {"type": "integer"}}], "unevaluatedItems": False},
            [1] * 100,
            [1] * 6_000,
        ),
        (
            {"allOf": [{"additionalProperties": True}], "unevaluatedProperties": False},
            {f"a{number}": 1 for number in range(100)},
            {f"a{number}": 1 for number in range(6_000)},
        ),
    ],
)
def test_members_that_would_each_be_looked_up_in_a_list_of_all_are_counted_first(
    schema: dict[str, Any], few: Any, many: Any
) -> None:
    """Of a megabyte that is a hundred thousand million comparisons, in one step that no clock ends."""
    check(schema, few)
    with pytest.raises(InvalidArguments, match=r"members are too many .* at most 5,000 in one"):
        check(schema, many)

"""What can be stored as JSON, and what is said of the rest."""

from __future__ import annotations

import datetime
import decimal
import json

import pytest

from tasks_app.errors import NotJson
from tasks_app.store.jsontext import clean_text, to_json


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -1.5, "", "é😀", [], {}, {"a": [1, {"b": None}]}, "\\u0000", {"k\\u0000": 1}],
)
def test_json_values_are_written_so_that_they_read_back_equal(value):
    """A backslash before u0000 is no NUL."""
    assert json.loads(to_json(value, "result")) == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "NaN"),
        ([float("inf")], "NaN, Infinity"),
        ("a\x00b", "NUL character"),
        ({"k": ["x", {"y": "\x00"}]}, "NUL character"),
        ({"\x00": 1}, "NUL character"),
        ("\ud800", "lone surrogate"),
        ({"k": "\udfff"}, "lone surrogate"),
        (object(), "Use dicts, lists"),
        (datetime.datetime(2026, 1, 1), "datetime is not JSON serializable"),
        (decimal.Decimal(1), "Decimal is not JSON serializable"),
        (b"bytes", "bytes is not JSON serializable"),
        ({1, 2}, "set is not JSON serializable"),
        ({(1, 2): 3}, "keys must be"),
    ],
)
def test_what_postgres_can_not_store_is_refused_with_the_reason(value, words):
    """NaN would become null in silence, NUL would abort the whole batch."""
    with pytest.raises(NotJson, match=r"The result.*") as refused:
        to_json(value, "The result")
    assert words in str(refused.value)


def test_a_value_that_contains_itself_and_one_too_deep_are_refused():
    """Neither may take the worker down."""
    circle: list = []
    circle.append(circle)
    deep: list = []
    for _ in range(200_000):
        deep = [deep]
    deep_nul: list = ["\x00"]
    for _ in range(900):
        deep_nul = [deep_nul]
    for value in (circle, deep, deep_nul):
        with pytest.raises(NotJson, match="circular and very deep"):
            to_json(value, "The result")


def test_the_limit_counts_bytes_and_names_the_remedy():
    """Not characters."""
    assert to_json("é" * 4, "The result", limit=10) == '"éééé"'
    with pytest.raises(NotJson, match=r"12 bytes of JSON; the limit is 10. Store it elsewhere"):
        to_json("é" * 5, "The result", limit=10)


@pytest.mark.parametrize("number", [1e308, -1e-300])
def test_the_limit_counts_numbers_as_postgres_gives_them_back(number):
    """With all the digits that an exponent stands for: a few hundred bytes for six."""
    to_json([number] * 3, "The result", 1_000)
    with pytest.raises(NotJson, match="the limit is 1,000"):
        to_json({"numbers": [number] * 4}, "The result", 1_000)


def test_what_looks_like_an_exponent_in_text_counts_as_it_is_written():
    """Hexadecimal digits do."""
    assert to_json(["1e308"] * 10, "The result", 100)


def test_text_for_postgres_loses_nul_and_surrogates():
    """A traceback may contain anything."""
    assert clean_text("a\x00b\ud800c") == "ab?c"

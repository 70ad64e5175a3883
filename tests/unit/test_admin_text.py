"""How the admin writes values."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncpoll.contract import percent
from tasks_app.admin.display import (
    duration,
    first_line,
    instant,
    moment,
    progress_bar,
    status_badge,
)
from tasks_app.admin.jsonparts import readable

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("seconds", "text", "short"),
    [
        (-3, "0 ms", "0 ms"),
        (0.34, "340 ms", "340 ms"),
        (0.9996, "1.0 s", "1.0 s"),
        (4.23, "4.2 s", "4.2 s"),
        (9.96, "10 s", "10 s"),
        (59.6, "1 min 0 s", "1 min"),
        (192, "3 min 12 s", "3 min"),
        (7_500, "2 h 5 min", "2 h"),
        (273_600, "3 d 4 h", "3 d"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str, short: str) -> None:
    """Or one of them, where there is less room."""
    assert duration(timedelta(seconds=seconds)) == text
    assert duration(timedelta(seconds=seconds), units=1) == short


def test_a_moment_names_its_zone() -> None:
    """To the second in lists, and to the millisecond where a second is long."""
    at = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
    assert (moment(at), instant(at)) == ("2026-01-02 03:04:05 UTC", "2026-01-02 03:04:05.678 UTC")
    midnight = datetime(2026, 1, 2, tzinfo=UTC)
    assert moment(midnight) == "2026-01-02 00:00:00 UTC"
    assert instant(midnight) == "2026-01-02 00:00:00.000 UTC"
    assert moment(None) == instant(None) == "-"


def test_a_text_s_first_line_says_when_there_is_more() -> None:
    """In as many characters as there is room for."""
    assert [first_line(text, 5) for text in ("", "12345", "123456", "12\n3", " 1\n")] == [
        "", "12345", "1234…", "12…", "1"
    ]  # fmt: skip


def test_only_what_is_complete_says_100_percent() -> None:
    """Rounded down, but not by the error of a float."""
    assert [percent(part) for part in (0.0, 0.29, 0.999, 1.0)] == ["0 %", "29 %", "99 %", "100 %"]


def test_badges_say_what_runs_late() -> None:
    """A stalled or stopping task wears a second badge."""
    assert status_badge("RUNNING").count("<span") == 1
    assert ">stalled<" in status_badge("RUNNING", stalled=True)
    assert ">stopping<" in status_badge("RUNNING", stopping=True)
    assert progress_bar(None) is None and progress_bar(1.0, "SUCCESS") is None


@given(VALUES, st.sampled_from([(",", ":"), (", ", ": ")]))
def test_indented_json_is_what_python_indents(value: object, separators: tuple[str, str]) -> None:
    """For every value, however it was spaced."""
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    assert readable(text) == json.dumps(value, ensure_ascii=False, indent=2)


@given(VALUES, st.integers(min_value=0, max_value=200))
def test_the_beginning_of_json_is_indented_too(value: object, cut: int) -> None:
    """Nothing of a text that was cut anywhere gets lost."""
    text = json.dumps(value, separators=(",", ":"))[:cut]
    shown = readable(text)
    assert _compact(shown) == _compact(text)


def test_deep_nesting_stays_small() -> None:
    """Indentation ends at 40 levels; ten thousand brackets are no stack overflow and no megabytes."""
    assert len(readable("[" * 10_000)) < 1_000_000


def _compact(text: str) -> str:
    return "".join(text.split())

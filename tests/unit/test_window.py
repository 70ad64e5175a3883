"""How long a hold is granted, and what a client may ask for."""

from __future__ import annotations

import math

import pytest

from asyncpoll.contract import Outcome
from tasks_app.errors import BadParameter
from tasks_app.hold.window import backoff_ms, grant, parse_flag, parse_seconds, parse_version


@pytest.mark.parametrize("asked", [0.5, 1, 24.9, 25, 26, 1e9])
def test_a_hold_is_never_longer_than_asked_or_allowed_and_at_most_a_sixteenth_shorter(asked):
    """Jitter is subtracted only, so neither ceiling is ever broken."""
    ceiling = min(asked, 25.0)
    granted = [grant(asked, 25.0).granted_seconds for _ in range(500)]
    assert max(granted) <= ceiling
    assert min(granted) >= ceiling * (1 - 1 / 16)
    assert len(set(granted)) > 1


def test_a_hold_of_zero_stays_zero():
    """Zero means: answer at once."""
    assert grant(0, 25.0).granted_seconds == 0


def test_the_client_is_told_to_wait_ten_seconds_longer_than_the_hold():
    """A read timeout shorter than the hold would cut every quiet poll."""
    window = grant(10, 25.0)
    assert window.client_read_timeout_ms == window.granted_ms + 10_000


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "1e999",
        "soon",
        "",
        " 5",
        "5 ",
        "1_0",
        "0x10",
        "٣",
        "--1",
        "1,5",
    ],
)
def test_what_is_not_a_finite_number_of_seconds_is_refused(text):
    """The refusal names value and rule."""
    with pytest.raises(BadParameter, match=r"max_hold_seconds is .*finite number of seconds"):
        parse_seconds(text, "max_hold_seconds")


@pytest.mark.parametrize("text", ["-1", "-0.5", "-1e9"])
def test_a_negative_hold_is_refused(text):
    """Zero is the way to ask for an answer at once."""
    with pytest.raises(BadParameter, match="must not be negative; 0 answers at once"):
        parse_seconds(text, "timeout")


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("25", 25), ("2.5", 2.5), (".5", 0.5), ("1e9", 1e9), ("-0", 0)]
)
def test_numbers_of_seconds_are_read(text, seconds):
    """A hold that is too long is a number all the same; it is clamped, not refused."""
    assert parse_seconds(text, "timeout") == seconds


@pytest.mark.parametrize("text", ["", "-1", "1e9", "1.0", "v3", " 3", "３", "+3", "0x1"])
def test_what_is_not_a_version_is_refused(text):
    """Versions are whole numbers from 0."""
    with pytest.raises(BadParameter, match=r"client_known_version is .*whole number from 0"):
        parse_version(text, "client_known_version")


@pytest.mark.parametrize("text", [str(2**63), "9" * 5000])
def test_a_version_beyond_every_row_is_only_a_version_that_no_row_has(text):
    """Such a client is confused, not hostile: it gets the row, and the word reset."""
    assert parse_version(text, "client_known_version") > 2**31


def test_flags_are_true_false_1_and_0():
    """Anything else is refused."""
    assert [parse_flag(text, "wait") for text in ("true", "True", "1", "false", "0")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(BadParameter, match="wait is 'yes'; it must be true or false"):
        parse_flag("yes", "wait")


def test_backoff_follows_the_outcome():
    """Nothing after news, a moment after a quiet hold, long and spread out where the server needs room."""
    assert backoff_ms(Outcome.CHANGED, 20) == backoff_ms(Outcome.TERMINAL, 20) == 0
    assert all(50 <= backoff_ms(Outcome.STILL_RUNNING, 20) <= 150 for _ in range(100))
    assert all(backoff_ms(Outcome.STILL_RUNNING, 0) >= 1_000 for _ in range(100))
    for outcome in (Outcome.DRAINING, Outcome.SHED):
        spread = {backoff_ms(outcome, 20) for _ in range(200)}
        assert min(spread) >= 250
        assert max(spread) - min(spread) > 1_000


def test_a_finite_hold_stays_finite():
    """The largest float is a number, too."""
    assert math.isfinite(grant(1.7e308, 25.0).granted_seconds)

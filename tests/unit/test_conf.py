"""Settings are read once, and wrong ones say what to do."""

from __future__ import annotations

import pytest

from tasks_app.conf import Conf, parse, wrong_values
from tasks_app.errors import ConfigurationError


def test_no_settings_are_good_settings():
    """Every default is valid."""
    assert parse({}) == Conf()


def test_whole_numbers_and_lists_are_taken_for_seconds_and_tuples():
    """As people write them."""
    conf = parse({"MAX_HOLD_SECONDS": 20, "TASK_MODULES": ["a", "b"]})
    assert (conf.MAX_HOLD_SECONDS, conf.TASK_MODULES) == (20.0, ("a", "b"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"MAX_HOLD": 20}, "ASYNCPOLL['MAX_HOLD'] is not a setting; remove it or use one of"),
        (
            {"MAX_HOLD_SECONDS": 0},
            "ASYNCPOLL['MAX_HOLD_SECONDS'] is 0.0; it must be between 0 and 3600",
        ),
        (
            {"MAX_HOLD_SECONDS": "20"},
            "ASYNCPOLL['MAX_HOLD_SECONDS'] is '20'; it must be a number, for",
        ),
        (
            {"MAX_HOLD_SECONDS": True},
            "ASYNCPOLL['MAX_HOLD_SECONDS'] is True; it must be a number, for",
        ),
        ({"MAX_HELD": 1.5}, "ASYNCPOLL['MAX_HELD'] is 1.5; it must be a whole number, for"),
        ({"MAX_HELD": -1}, "must be greater than 0"),
        ({"DEFAULT_TIMEOUT_SECONDS": float("inf")}, "at most 604800 seconds"),
        ({"RETRY_MAX_SECONDS": 1e18}, "at most 604800 seconds"),
        ({"LEASE_SECONDS": float("inf")}, "must be between 1 and 3600 seconds"),
        ({"WORKER_POLL_SECONDS": float("nan")}, "at most 604800 seconds"),
        ({"WORKER_POLL_SECONDS": 1e-320}, "must be at least 0.01"),
        ({"DEFAULT_TIMEOUT_SECONDS": 0.001}, "must be at least 0.01"),
        ({"ANONYMOUS": "yes"}, "ASYNCPOLL['ANONYMOUS'] is 'yes'; it must be True or False, for"),
        (
            {"TASK_MODULES": "a.b"},
            "ASYNCPOLL['TASK_MODULES'] is 'a.b'; it must be a list of texts, for",
        ),
        ({"HEARTBEAT_SECONDS": 10.0}, "at most half of LEASE_SECONDS"),
        ({"DEFAULT_MAX_ATTEMPTS": 0}, "must be between 1 and 100"),
        ({"RETENTION_DAYS": -1}, "is -1.0; it must be between 0, which keeps everything, and"),
        ({"PRUNE_BATCH": 0}, "is 0; it must be between 1 and 100000"),
        ({"MAX_HOLD_SECONDS": 10**400}, "must be between 0 and 3600"),
        (None, "ASYNCPOLL is None; it must be a dictionary of settings, for example {'MAX_HOLD"),
        (["MAX_HELD"], "ASYNCPOLL is ['MAX_HELD']; it must be a dictionary of settings, for"),
    ],
)
def test_a_wrong_setting_is_refused_with_value_rule_and_remedy(values, words):
    """At start, not in the middle of the night."""
    with pytest.raises(ConfigurationError) as refused:
        parse(values)
    assert words in str(refused.value)


def test_all_that_is_wrong_is_said_at_once():
    """A line for each value, of whatever kind the fault is."""
    with pytest.raises(ConfigurationError) as refused:
        parse({"MAX_HOLD": 20, "MAX_HELD": "many", "PRUNE_BATCH": 0, "HEARTBEAT_SECONDS": 10})
    said = [line.partition("]")[0] for line in str(refused.value).splitlines()]
    names = ["MAX_HOLD", "MAX_HELD", "PRUNE_BATCH", "HEARTBEAT_SECONDS"]
    assert said == [f"ASYNCPOLL[{name!r}" for name in names]


@pytest.mark.parametrize("lease", ["60", 0])
def test_a_heartbeat_is_not_blamed_for_a_lease_that_is_wrong_itself(lease):
    """It may go well with the one that is meant."""
    said = wrong_values({"LEASE_SECONDS": lease, "HEARTBEAT_SECONDS": 20})
    assert [each.partition(" ")[0] for each in said] == ["ASYNCPOLL['LEASE_SECONDS']"]


def test_settings_are_frozen():
    """Nobody changes them while serving."""
    with pytest.raises(AttributeError):
        parse({}).MAX_HELD = 1  # type: ignore[misc]

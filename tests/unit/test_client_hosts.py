"""What a process learns of a host."""

from __future__ import annotations

import pytest

from asyncpoll.client.exchange import GiveUp
from asyncpoll.client.hosts import Host, forget_hosts, host_of
from tests.unit.talks import Talk


def test_two_cuts_at_about_the_same_age_lower_the_hold_for_good():
    """Safely below, and never up again."""
    host = Host()
    host.was_cut(20.0, sent_at=0)
    assert host.hold_ceiling is None
    host.was_cut(21.0, sent_at=30)
    assert host.hold_ceiling == 15
    host.survived(40)
    host.was_cut(29.0, sent_at=100)
    host.was_cut(29.0, sent_at=200)
    assert host.hold_ceiling == 15


def test_cuts_at_different_ages_teach_nothing():
    """They are accidents."""
    host = Host()
    for number, age in enumerate((5.0, 20.0, 11.0, 16.0, 8.0)):
        host.was_cut(age, sent_at=100 * number)
    assert host.hold_ceiling is None


def test_a_server_that_dies_under_many_waits_teaches_nothing():
    """All are cut at one moment, some at the same age."""
    host = Host()
    for number in range(500):
        host.was_cut(20 - number / 25, sent_at=number / 25)
    assert host.hold_ceiling is None


def test_an_answer_beyond_that_age_refutes_a_cut():
    """The gateway has more patience than that."""
    host = Host()
    host.was_cut(10.0, sent_at=0)
    host.survived(24)
    host.was_cut(10.0, sent_at=100)
    assert host.hold_ceiling is None


def test_cuts_within_a_second_are_no_limit():
    """Holds below a second would be short polling."""
    host = Host()
    for number in range(5):
        host.was_cut(0.4, sent_at=10 * number)
    assert host.hold_ceiling is None


def test_retries_of_a_few_waits_go_at_once_and_those_of_many_take_turns():
    """At a share of the rate that the same waits have when all is well."""
    host = Host()
    assert [host.retry_turn(0) for _ in range(5)] == [0, 0, 0, 0.5, 1.0]
    many = Host()
    for _ in range(500):
        many.enter(1 / 25)
    turns = [many.retry_turn(100.0) for _ in range(500)]
    assert turns == sorted(turns)
    assert turns[-1] == pytest.approx(500 / 6, rel=0.01)
    for _ in range(500):
        many.leave(1 / 25)
    assert [many.retry_turn(1_000.0) for _ in range(5)] == [0, 0, 0, 0.5, 1.0]


def test_a_host_is_remembered_by_its_origin():
    """Whatever the path, and however it is written."""
    forget_hosts()
    assert host_of("http://example.org/a") is host_of("http://EXAMPLE.org/b")
    assert host_of("http://example.org/a") is not host_of("http://example.org:8000/a")


def test_a_turn_that_nobody_took_is_somebody_elses():
    """However many waits give up in an outage, the first retry after it is soon."""
    host = Host()
    for _ in range(1_000):
        talk = Talk(host=host, lifetime=1.0)
        with talk.conversation.among_its_host():
            talk.reply(500, {})
        assert isinstance(talk.step, GiveUp)
    assert host.retry_turn(1_000.0) <= 1

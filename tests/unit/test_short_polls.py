"""How often a caller is answered at once, by task; and where a request comes from, as that counts it."""

from __future__ import annotations

from itertools import combinations
from uuid import UUID

import pytest
from django.test import RequestFactory

from tasks_app.api.sources import source_of
from tasks_app.hold.shortpolls import Brought, ShortPolls

TASKS = [UUID(int=number) for number in range(1, 11)]


class World:
    """Short polls at a moment that only the test moves on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.polls = ShortPolls(lambda: self.now)

    def asks(self, *tasks: UUID, known: int = 1, version: int = 1) -> bool:
        """May somebody who knows version `known` of each be told `version`?"""
        return self.polls.allows("me", [Brought(task, known, version) for task in tasks])


def test_a_bucket_holds_as_many_answers_as_it_is_given_in_a_second() -> None:
    """Five at once, five a second from then on."""
    world = World()
    assert [world.asks(TASKS[0]) for _ in range(7)] == [True] * 5 + [False] * 2
    world.now += 0.4
    assert [world.asks(TASKS[0]) for _ in range(3)] == [True, True, False]
    assert world.asks(TASKS[1])


def test_the_same_tasks_asked_for_in_other_sets_are_no_other_loop() -> None:
    """All pairs of ten tasks are 45 questions; what each task may be asked about bounds them."""
    world = World()
    answered = sum(world.asks(*pair) for pair in combinations(TASKS, 2))
    assert answered <= 5 * len(TASKS) / 2
    assert not world.asks(*TASKS)


def test_a_refusal_takes_nothing() -> None:
    """Of those that were not empty."""
    world = World()
    for _ in range(5):
        assert world.asks(TASKS[0])
    for _ in range(20):
        assert not world.asks(TASKS[0], TASKS[1])
    assert [world.asks(TASKS[1]) for _ in range(6)] == [True] * 5 + [False]


def test_news_of_one_task_is_worth_the_answer_of_all_once() -> None:
    """A client that follows is never refused; one that forgets what it was told is."""
    world = World()
    for version in range(2, 40):
        assert world.polls.allows(
            "me", [Brought(TASKS[0], version - 1, version), Brought(TASKS[1], 1, 1)]
        )
    assert [world.asks(TASKS[0], known=1, version=39) for _ in range(6)] == [True] * 5 + [False]


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", "unix:"),
        ("x" * 65, ""),
    ],
)
def test_a_source_is_what_one_customer_is_given(address: str, source: str) -> None:
    """An address of IPv4, a network of IPv6; and what is neither is itself, if it is short."""
    request = RequestFactory().get("/")
    request.META["REMOTE_ADDR"] = address
    assert source_of(request) == source

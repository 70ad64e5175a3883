"""Whose turn it is, and what the limits of running tasks leave room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.claiming.room import Room
from tasks_app.claiming.turns import Turns
from tasks_app.store import Lane, Share


def lane(owner: str, queue: str = "default") -> Lane:
    return Lane(queue, owner)


def turns(*owners: str, credit: int = 10) -> Turns:
    made = Turns(credit)
    made.learn([lane(owner) for owner in owners])
    return made


def serve(made: Turns, places: int, room: Room | None = None) -> dict[str, int]:
    """One claim of which every lane fills its share; who got how many."""
    shares = made.allot(places, room)
    made.settle(shares, [share.lane for share in shares for _ in range(share.quota)])
    return {share.lane.owner: share.quota for share in shares}


class TestTurns:
    """Places go round by owner."""

    def test_places_are_divided_evenly(self):
        """Whatever each has waiting."""
        assert serve(turns("a", "b", "c"), 9) == {"a": 3, "b": 3, "c": 3}

    def test_single_places_go_round(self):
        """A worker with one slot serves each owner in turn."""
        made = turns("a", "b", "c")
        order = [owner for _ in range(6) for owner in serve(made, 1)]
        assert order == ["a", "b", "c", "a", "b", "c"]

    def test_an_odd_place_goes_to_another_owner_the_next_time(self):
        """Nobody is always the one that gets the odd place."""
        made = turns("a", "b")
        total: Counter[str] = Counter()
        for _ in range(10):
            total.update(serve(made, 3))
        assert total == {"a": 15, "b": 15}

    def test_a_lane_alone_gets_everything(self):
        """There is nobody to share with."""
        assert serve(turns("a"), 200) == {"a": 200}

    def test_who_was_idle_resumes_a_bounded_credit_ahead(self):
        """Enough to be through with a few tasks at once, and not so much that it becomes the others' latency."""
        made = turns("flood", credit=4)
        serve(made, 1_000)
        made.learn([lane("new")])
        order = [owner for _ in range(8) for owner in serve(made, 1)]
        assert order[:4] == ["new"] * 4
        assert Counter(order[4:]) == {"new": 2, "flood": 2}

    def test_whoever_has_all_places_saves_up_nothing_by_that(self):
        """A flood that has just begun is as far ahead of whoever comes next as one that has gone on for long."""
        made = turns("earlier", credit=4)
        serve(made, 10)
        made.settle(made.allot(1), [])
        made.learn([lane("flood")])
        serve(made, 1)
        made.learn([lane("new")])
        order = [owner for _ in range(8) for owner in serve(made, 1)]
        assert order[:4] == ["new"] * 4
        assert Counter(order[4:]) == {"new": 2, "flood": 2}

    def test_idling_longer_saves_up_no_more(self):
        """A credit is not a debt of the others'."""
        made = turns("flood", "new", credit=2)
        serve(made, 4)
        made.settle(made.allot(2), [lane("flood")])
        for _ in range(5):
            serve(made, 100)
        made.learn([lane("new")])
        assert serve(made, 6) == {"new": 4, "flood": 2}

    def test_a_lane_that_came_back_short_is_forgotten_until_it_is_heard_of_again(self):
        """A claim does not ask for what is not there."""
        made = turns("a", "b")
        made.settle(made.allot(4), [lane("a"), lane("b"), lane("b")])
        assert serve(made, 4) == {"b": 4}
        made.guess("default")
        assert set(serve(made, 20)) == {"a", "b"}
        made.settle(made.allot(100), [])
        assert not made
        assert made.allot(2) == []

    def test_a_guess_is_of_that_queue_only(self):
        """Another queue has nothing to do with it."""
        made = turns("a")
        made.settle(made.allot(1), [])
        made.guess("other")
        assert not made

    def test_a_thousand_owners_are_served_once_each_before_anyone_twice(self):
        """Also where a claim has fewer places than there are owners."""
        made = turns(*(f"o{number}" for number in range(1_000)), credit=8)
        served: Counter[str] = Counter()
        for _ in range(100):
            served.update(serve(made, 10))
        assert len(served) == 1_000
        assert set(served.values()) == {1}

    def test_memory_of_who_was_served_is_bounded(self):
        """Owners are named by whoever submits tasks."""
        made = Turns(credit=10)
        for number in range(10_100):
            made.settle([Share(lane(f"o{number}"), 2)], [lane(f"o{number}")])
        assert len(made._tags) == 10_000

    def test_the_next_scan_goes_on_after_the_last_owner_seen(self):
        """Where a scan does not find them all, the next finds the others."""
        assert turns("a", "b").seen == {"default": "b"}

    @given(
        st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True),
        st.lists(st.integers(1, 30), min_size=1, max_size=30),
    )
    def test_every_place_is_given_and_owners_stay_within_one_task(self, owners, claims):
        """With everybody's backlog endless, nobody gets more than one task ahead of anybody."""
        made = turns(*owners)
        total: Counter[str] = Counter(dict.fromkeys(owners, 0))
        for places in claims:
            got = serve(made, places)
            assert sum(got.values()) == places
            total.update(got)
        assert max(total.values()) - min(total.values()) <= 1


class TestRoom:
    """Limits of running tasks, per queue and per owner."""

    @staticmethod
    def room(
        per_queue: Mapping[str, int], per_owner: int = 0, running: Mapping[Lane, int] | None = None
    ) -> Room:
        return Room(per_queue, per_owner, running or {})

    def test_a_queue_gets_what_its_limit_leaves(self):
        """What runs already counts, whoever's it is."""
        room = self.room({"default": 5}, running={lane("x"): 2, lane("y"): 1, lane("z", "q"): 9})
        assert serve(turns("a", "b"), 10, room) == {"a": 1, "b": 1}

    def test_an_owner_gets_what_its_limit_leaves_over_all_queues(self):
        """The others take the places it may not have."""
        room = self.room({}, per_owner=3, running={lane("a", "elsewhere"): 2})
        assert serve(turns("a", "b"), 10, room) == {"a": 1, "b": 3}

    def test_an_owner_of_two_lanes_is_counted_once(self):
        """One claim that takes from both does not exceed the limit either."""
        made = turns("a")
        made.learn([lane("a", "other")])
        shares = made.allot(10, self.room({}, per_owner=3))
        assert sum(share.quota for share in shares) == 3

    def test_tasks_without_an_owner_have_no_owners_limit(self):
        """Nobody is not one."""
        assert serve(turns(""), 10, self.room({}, per_owner=3)) == {"": 10}

    def test_a_full_queue_leaves_the_places_to_another(self):
        """And is still known to hold tasks."""
        made = turns("a")
        made.learn([lane("a", "other")])
        shares = made.allot(4, self.room({"default": 1}, running={lane("x"): 1}))
        assert shares == [(lane("a", "other"), 4)]
        assert made.allot(1, self.room({"default": 1}))

    @pytest.mark.parametrize("full", [{"default": 1}, {"default": 1, "other": 3}])
    def test_no_room_at_all_is_no_share(self, full):
        """There is nothing to ask the database for."""
        assert turns("a").allot(5, self.room(full, running={lane("b"): 1})) == []

    def test_many_full_owners_do_not_hide_one_that_has_room(self):
        """However far back in line it stands."""
        owners = [f"o{number}" for number in range(500)]
        running = {lane(owner): 1 for owner in owners}
        made = turns(*owners, "free")
        assert serve(made, 2, self.room({}, per_owner=1, running=running)) == {"free": 1}

"""Who gets one of a few places."""

from __future__ import annotations

from tasks_app.webhooks.places import Places


def taken(places: Places, owner: str, hosts: int) -> int:
    """How many this owner gets who wants one for each of its hosts."""
    got = 0
    for number in range(hosts):
        host = f"{number}.{owner}"
        if places.is_free(owner, host):
            places.take(owner, host)
            got += 1
    return got


def test_each_owner_has_half_of_what_the_others_left():
    """So there is something for the next one, however many the first ones want."""
    places = Places(32, most_each=4)
    assert [taken(places, owner, 100) for owner in "abcde"] == [16, 8, 4, 2, 1]
    assert places.taken == 31


def test_a_host_has_its_share_and_no_more():
    """Whoever wants to send there."""
    places = Places(32, most_each=4)
    for owner in "aabbcc":
        if places.is_free(owner, "hooks.example.com"):
            places.take(owner, "hooks.example.com")
    assert places.taken == 4
    assert places.is_free("a", "elsewhere.example.com")


def test_what_is_left_can_be_taken_again():
    """By anybody; a copy has no part in it."""
    places = Places(2, most_each=1)
    places.take("a", "h")
    other = places.copy()
    assert not places.is_free("a", "i") and not places.is_free("b", "h")
    places.leave("a", "h")
    assert places.is_free("a", "i") and places.is_free("b", "h")
    assert (places.taken, other.taken) == (0, 1)

"""Looking names up, in few threads of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from tasks_app.webhooks import lookups
from tasks_app.webhooks.places import Places
from tasks_app.webhooks.targets import read

PUBLIC = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))]


class Resolver:
    """Answers at once, but for names below slow.example.com, which wait for `go_on`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()

    def getaddrinfo(self, host, port, **_):
        self.asked.append(host)
        if host.endswith("slow.example.com"):
            self.go_on.wait(60)
        return PUBLIC


@pytest.fixture
def resolver(monkeypatch) -> Iterator[Resolver]:
    """It, with all places free."""
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver.getaddrinfo)
    monkeypatch.setattr(lookups, "_places", Places(32, 1))
    monkeypatch.setattr(lookups, "_running", {})
    yield resolver
    resolver.go_on.set()


def look_up(host: str, owner: str = "acme") -> asyncio.Task[list[str]]:
    """A look-up that has begun."""
    return asyncio.create_task(lookups.addresses_of(read(f"https://{host}/"), owner))


async def test_the_slow_names_of_an_owner_leave_places_to_the_others(resolver):
    """It has half of them; who comes after is told to try again, instead of a thread each."""
    slow = [look_up(f"{number}.slow.example.com") for number in range(40)]
    refused, waiting = await asyncio.wait(slow, timeout=0.1)
    assert (len(refused), len(waiting)) == (24, 16)
    assert {type(each.exception()) for each in refused} == {lookups.LookupFailed}
    assert await look_up("fast.example.com", "zenith") == ["8.8.8.8"]
    resolver.go_on.set()
    assert await asyncio.gather(*waiting) == [["8.8.8.8"]] * 16
    assert await look_up("fast.example.com") == ["8.8.8.8"]


async def test_a_slow_name_takes_one_place_however_often_it_is_asked_for(resolver):
    """By whomever; who stops waiting leaves the others waiting."""
    impatient, *others = [look_up("slow.example.com", f"owner {n}") for n in range(50)]
    _, waiting = await asyncio.wait(others, timeout=0.1)
    assert len(waiting) == 49
    impatient.cancel()
    resolver.go_on.set()
    assert await asyncio.gather(*others) == [["8.8.8.8"]] * 49
    assert resolver.asked == ["slow.example.com"]


async def test_each_look_up_asks_anew(resolver):
    """Nothing is remembered: what the name stood for a moment ago is not what it stands for."""
    for _ in range(2):
        assert await look_up("fast.example.com") == ["8.8.8.8"]
    assert resolver.asked == ["fast.example.com"] * 2


async def test_a_thread_that_can_not_start_is_a_failed_look_up_and_keeps_no_place(
    resolver, monkeypatch
):
    """The places are few, and one that is lost never comes back."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with pytest.raises(lookups.LookupFailed, match="can't be looked up now: can't start"):
            await lookups._look_up("example.org", "acme")
    assert lookups._places.taken == 0
    assert await look_up("example.org") == ["8.8.8.8"]


@pytest.mark.parametrize("error", [UnicodeError("label too long"), socket.gaierror(-2, "unknown")])
async def test_a_name_that_can_not_be_looked_up_gives_its_place_back(resolver, monkeypatch, error):
    """Whatever the resolver raises."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(lookups.LookupFailed, match="can't be looked up"):
        await look_up("example.org")
    assert lookups._places.taken == 0

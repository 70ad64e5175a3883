"""Processes that share a port answer a scrape together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks_app.observers.exposition import merged
from tasks_app.observers.metrics import WAITS
from tasks_app.scrapes import siblings as module
from tasks_app.scrapes.siblings import Siblings, meeting_place
from tests.scraping import Scrape

ONE = """# HELP asyncpoll_held Requests held now
# TYPE asyncpoll_held gauge
asyncpoll_held{process="1",route="# HELP me"} 2.0
# HELP asyncpoll_queue_depth Ready tasks
# TYPE asyncpoll_queue_depth gauge
asyncpoll_queue_depth{process="1",queue="a"} 7.0
"""
OTHER = """# HELP asyncpoll_held Requests held now
# TYPE asyncpoll_held gauge
asyncpoll_held{process="2",route="status"} 3.0
# HELP asyncpoll_newer_total What only a newer release counts
# TYPE asyncpoll_newer_total counter
asyncpoll_newer_total{process="2"} 1.0
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where they meet."""
    with meeting_place() as path:
        yield path


def sibling(place: Path, name: str, text: str) -> Siblings:
    """One of several, which are all in this process here."""

    async def figures() -> str:
        return text

    made = Siblings(place, figures)
    made._own = place / name
    return made


def test_several_scrapes_are_one() -> None:
    """Each family once, as the format has it, with the samples of all."""
    text = merged([ONE, OTHER])
    assert text.count("# TYPE asyncpoll_held gauge") == 1
    assert text.index('route="status"') < text.index("asyncpoll_queue_depth")
    scrape = Scrape(text)
    assert (scrape.value("held"), scrape.value("queue_depth")) == (5, 7)
    assert scrape.value("newer_total") == 1
    assert merged([ONE]) == ONE


async def test_who_is_asked_asks_the_others(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And tells them what it knows of the database's clock; who has left is not asked any more."""
    monkeypatch.setattr(WAITS, "ahead_seconds", None)
    one, other = sibling(place, "1", ONE), sibling(place, "2", OTHER)
    await one.start()
    await other.start()
    assert list((await one.gather()).texts) == [OTHER]
    assert list((await other.gather()).texts) == [ONE]
    assert WAITS.ahead_seconds is None
    WAITS.ahead_seconds = 2.5
    reader, writer = await asyncio.open_unix_connection(place / "2")
    writer.write(b"7.5\n")
    assert (await reader.read(-1)).decode() == OTHER
    writer.close()
    assert WAITS.ahead_seconds == 7.5
    await other.stop()
    assert (await one.gather()).texts == []
    await one.stop()
    assert not list(place.iterdir())


async def test_who_is_stuck_is_not_waited_for_and_who_died_is_forgotten(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is counted: somebody has to look at it."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.05)
    one = sibling(place, "1", ONE)
    await one.start()
    with socket.socket(socket.AF_UNIX) as stuck, socket.socket(socket.AF_UNIX) as dead:
        stuck.bind(str(place / "stuck"))
        stuck.listen()
        dead.bind(str(place / "dead"))
        dead.close()
        found = await one.gather()
    assert (found.texts, found.silent) == ([], 1)
    assert not (place / "dead").exists()
    await one.stop()


async def test_the_last_orphan_clears_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent that was killed could not."""
    place = tmp_path / "place"
    place.mkdir()
    one, other = sibling(place, "1", ONE), sibling(place, "2", OTHER)
    await one.start()
    await other.start()
    monkeypatch.setattr("os.getppid", lambda: 1)
    await one.stop()
    assert place.exists()
    await other.stop()
    assert not place.exists()


async def test_what_is_no_question_gets_no_answer(place: Path) -> None:
    """And harms nobody."""
    one = sibling(place, "1", ONE)
    await one.start()
    for question in (b"", b"{\n", b"x" * 100_000):
        reader, writer = await asyncio.open_unix_connection(place / "1")
        writer.write(question)
        writer.write_eof()
        assert await reader.read(-1) == b""
        writer.close()
    await one.stop()


def test_only_their_owner_enters_where_they_meet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A long name of the usual place for such directories would leave no room for a socket's."""
    with meeting_place() as place:
        assert place.stat().st_mode & 0o077 == 0
    assert not place.exists()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("x" * 80)))
    with meeting_place() as place:
        assert len(str(place)) < 50

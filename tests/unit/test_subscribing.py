"""Who hears of events."""

from __future__ import annotations

from typing import Any

from tasks_app.events import emit, subscribe_once


def test_an_observer_that_is_installed_twice_hears_once_until_it_ends():
    """Several places of a process may install it, and either end is the end."""
    heard: list[str] = []

    def listen(event: str, facts: dict[str, Any]) -> None:
        heard.append(event)

    first, second = subscribe_once(listen), subscribe_once(listen)
    emit("test.once")
    assert heard == ["test.once"]
    second()
    emit("test.after")
    first()
    assert heard == ["test.once"]

"""Looking names up, in few threads of its own."""

from __future__ import annotations

import threading

import pytest

from tasks_app.webhooks import lookups


async def test_a_thread_that_can_not_start_is_a_failed_look_up_and_keeps_no_place(monkeypatch):
    """The places are few, and one that is lost never comes back."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    place = threading.BoundedSemaphore(1)
    monkeypatch.setattr(lookups, "_running", place)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(lookups.LookupFailed, match="can't be looked up now: can't start"):
        await lookups._look_up("example.org", 443)
    assert place.acquire(blocking=False)

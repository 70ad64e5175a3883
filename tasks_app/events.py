"""Engine code says what happened with `emit`; who turns that into log lines or metrics lives in `observers/`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

Listener = Callable[[str, dict[str, Any]], None]

_listeners: list[Listener] = []
_logger = logging.getLogger("tasks_app.events")


def emit(event: str, /, **facts: Any) -> None:
    """Tell every subscriber that `event` happened. Never raises: an observer's fault is not the engine's."""
    for listener in tuple(_listeners):
        try:
            listener(event, facts)
        except Exception:
            _logger.exception("An observer of %r failed", event)


def subscribe(listener: Listener) -> Callable[[], None]:
    """Call `listener(event, facts)` for every event from now on. Returns the function that ends it."""
    _listeners.append(listener)

    def unsubscribe() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return unsubscribe


def subscribe_once(listener: Listener) -> Callable[[], None]:
    """`subscribe`, unless it is subscribed: of the process's observers, each may be installed from several places."""
    unsubscribe = subscribe(listener)
    if _listeners.count(listener) > 1:
        unsubscribe()
    return unsubscribe

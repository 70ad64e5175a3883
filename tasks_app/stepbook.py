"""Where an attempt keeps the results of its task's steps: what `step` needs of whoever runs attempts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from tasks_app.errors import StepRefused
from tasks_app.limits import MAX_NAME_LENGTH

T = TypeVar("T")


class StepBook:
    """The steps of one attempt, usable from any thread. A subclass gives `find` and `record`."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._begun: set[str] = set()

    def find(self, name: str) -> Future[str | None]:
        """The recorded result, as JSON text; None: the step was not done yet. LeaseLost: no step may begin."""
        raise NotImplementedError

    def record(self, name: str, result: str) -> Future[None]:
        """Record a result, given as JSON text. Done once that is committed; LeaseLost: it never will be."""
        raise NotImplementedError

    @contextmanager
    def taking(self, name: str) -> Iterator[None]:
        """While it lasts no other step of that name begins. Raises ValueError for an unfit name, StepRefused."""
        check_name(name)
        with self._mutex:
            if name in self._begun:
                raise StepRefused(
                    f"Step {name!r} was begun while it is being done; give each step of a task its own name."
                )
            self._begun.add(name)
        try:
            yield
        finally:
            with self._mutex:
                self._begun.discard(name)


def check_name(name: str) -> None:
    """Raises ValueError unless `name` can name a step."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise ValueError(
            f"A step is called {name!r:.80}; its name is 1 to {MAX_NAME_LENGTH} printable characters."
        )


def known(value: T) -> Future[T]:
    """A future that is done."""
    future: Future[T] = Future()
    future.set_result(value)
    return future

"""Claimed tasks, without a database."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tasks_app.store import Claimed


def claimed(number: int = 1, **facts: Any) -> Claimed:
    """A claimed task; its attempt follows its failures unless given."""
    facts.setdefault("failures", 0)
    return Claimed(
        **{
            "id": UUID(int=number),
            "name": "sample.aadd",
            "queue": "default",
            "owner": "",
            "args": "[1]",
            "kwargs": "{}",
            "attempt": facts["failures"] + 1,
            "max_attempts": 3,
            "timeout_seconds": 600.0,
            "version": 2,
            "cancel_requested": False,
            "trace_context": None,
            "queue_wait_seconds": 0.0,
            **facts,
        }
    )

"""A process that can't keep up: it sheds what it would have to hold, and answers everything else."""

from __future__ import annotations

import asyncio
import json
import os
import signal

from tests.acceptance.processes import ask, server
from tests.support import aeventually

# More than twice what may be late, as the lateness is that of some seconds on end.
FROZEN_SECONDS = 4.0
SUBMISSION = json.dumps({"task": "sample.add", "kwargs": {"a": 1, "b": 2}}).encode()


async def test_a_process_whose_event_loop_lags_sheds_until_it_has_caught_up(
    database_url: str,
) -> None:
    """Stopped and continued, again if need be: holds are turned away at once, health and submissions are not."""
    with server("daphne", database_url) as (port, pid):
        task = (await ask(port, "/api/v1/tasks", "POST", SUBMISSION)).json["task_id"]
        poll = f"/api/v1/tasks/{task}/long_poll?client_known_version=1&max_hold_seconds=0.5"
        assert (await ask(port, poll)).json["outcome"] == "STILL_RUNNING"
        await aeventually(lambda: _sheds_once_frozen(port, pid, poll))
        assert (await ask(port, "/healthz")).status == 200
        assert (await ask(port, "/api/v1/tasks", "POST", SUBMISSION)).status == 202
        await aeventually(lambda: _outcome(port, poll, "STILL_RUNNING"))


async def _sheds_once_frozen(port: int, pid: int, poll: str) -> bool:
    os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(FROZEN_SECONDS)
    os.kill(pid, signal.SIGCONT)
    # The first may come before the next beat, which is what notices.
    return any([await _outcome(port, poll, "SHED") for _ in range(3)])


async def _outcome(port: int, poll: str, expected: str) -> bool:
    return bool((await ask(port, poll)).json.get("outcome") == expected)

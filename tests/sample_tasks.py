"""Tasks that tests run."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from django.utils import timezone
from opentelemetry import trace

from tasks_app.context import current_task
from tasks_app.tasks import Backoff, Retry, task

# Tests in the worker's process open these; tasks wait at them.
gates: defaultdict[str, threading.Event] = defaultdict(threading.Event)
barriers: dict[str, threading.Barrier] = {}
# What tasks saw, by the name they were given.
seen: defaultdict[str, list[Any]] = defaultdict(list)


@contextmanager
def fresh_gates() -> Iterator[None]:
    """Forget what earlier tests left; at the end let through whoever still waits."""
    seen.clear()
    yield
    for gate in gates.values():
        gate.set()
    for barrier in barriers.values():
        barrier.abort()
    gates.clear()
    barriers.clear()


@task(name="sample.add", expose=True)
def add(a: int, b: int = 1) -> int:
    """The sum."""
    return a + b


@task(name="sample.aadd", expose=True)
async def aadd(a: int, b: int = 1) -> int:
    """The sum, from a coroutine."""
    return a + b


@task(name="sample.sign_in", sensitive=("password", 'o"dd'), expose=True, max_attempts=1)
def sign_in(user: str, password: str, **others: Any) -> None:
    """Has what nobody shall see, and is careless about it."""
    raise PermissionError(f"{password!r}, {others} is not what {user} says")


@task(name="sample.span")
def span() -> str:
    """The id of the OpenTelemetry span that is current."""
    return f"{trace.get_current_span().get_span_context().span_id:016x}"


@task(name="sample.aspan")
async def aspan() -> str:
    """The same of a coroutine."""
    return f"{trace.get_current_span().get_span_context().span_id:016x}"


@task(name="sample.other_queue", queue="other")
async def other_queue() -> str:
    """Says so from another queue."""
    return "other"


@task(name="sample.fail", max_attempts=2)
def fail(message: str = "boom") -> None:
    """Raises at each attempt."""
    raise ValueError(message)


@task(name="sample.fail_once", max_attempts=3)
async def fail_once() -> int:
    """Raises at the first attempt, then gives the number of the attempt."""
    if current_task().attempt == 1:
        raise ConnectionError("the other side is not there yet")
    return current_task().attempt


@task(name="sample.picky", max_attempts=5, retry_on=OSError, backoff=Backoff(base=0))
def picky(*errors: str) -> int:
    """Raises one of `errors` at each attempt, then gives the number of the attempt."""
    attempt = current_task().attempt
    if attempt <= len(errors):
        raise {"ConnectionError": ConnectionError, "ValueError": ValueError}[errors[attempt - 1]]()
    return attempt


@task(name="sample.ask_again", max_attempts=3, retry_on=(), backoff=Backoff(base=0))
async def ask_again(times: int, after: float | None = None) -> int:
    """Asks so many times to be tried again."""
    if current_task().attempt <= times:
        raise Retry(after, "not ready yet")
    return current_task().attempt


@task(name="sample.exit", max_attempts=1)
def leave(kind: str = "sync") -> None:
    """Tries to end the process."""
    raise SystemExit(f"{kind} task leaves")


@task(name="sample.aexit", max_attempts=1)
async def aleave(error: str = "SystemExit") -> None:
    """Raises what would end a process or a loop."""
    raise {
        "SystemExit": SystemExit,
        "KeyboardInterrupt": KeyboardInterrupt,
        "CancelledError": asyncio.CancelledError,
    }[error]("async task leaves")


@task(name="sample.exit_beside", max_attempts=1)
async def leave_beside() -> None:
    """A coroutine of its own tries to end the process."""
    await asyncio.gather(aleave.func(), asyncio.sleep(600))


@task(name="sample.unprintable", max_attempts=1)
def unprintable() -> None:
    """Raises an error with a NUL and a lone surrogate in its message."""
    raise ValueError("a\x00b\ud800c")


@task(name="sample.bad_result", max_attempts=3)
async def bad_result(kind: str) -> Any:
    """Returns what can't be stored."""
    circular: list[Any] = []
    circular.append(circular)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return {
        "nul": "a\x00b",
        "nan": float("nan"),
        "surrogate": "\ud800",
        "large": "x" * 2_000_000,
        "object": object(),
        "deep": deep,
        "circular": circular,
    }[kind]


@task(name="sample.report")
def report(progress: list[float], gate: str = "") -> str:
    """Reports each number, waiting at `gate` before it ends."""
    for number in progress:
        current_task().report(number, f"at {number}", {"number": number})
    if gate:
        gates[gate].wait(30)
    return "reported"


@task(name="sample.areport")
async def areport(progress: list[float]) -> str:
    """Reports each number from a coroutine."""
    for number in progress:
        current_task().report(number, f"at {number}")
    return "reported"


@task(name="sample.report_at_gates")
def report_at_gates(progress: list[float]) -> str:
    """Reports each number once its gate is open."""
    for number in progress:
        gates[str(number)].wait(30)
        current_task().report(number)
    return "reported"


@task(name="sample.meet")
def meet(barrier: str) -> int:
    """Waits until as many have come as the barrier wants: only those that run at the same time ever get past."""
    return barriers[barrier].wait(30)


@task(name="sample.wait_at")
def wait_at(gate: str) -> int:
    """Waits until a gate opens."""
    seen[f"started {gate}"].append(current_task().attempt)
    gates[gate].wait(30)
    seen[f"passed {gate}"].append(current_task().attempt)
    return current_task().attempt


@task(name="sample.hang", max_attempts=1, timeout=0.3)
def hang(gate: str) -> str:
    """Waits at a gate, longer than it may."""
    gates[gate].wait(30)
    return "too late"


@task(name="sample.ahang", max_attempts=1, timeout=0.3)
async def ahang(note: str = "") -> None:
    """Sleeps longer than it may, and notes its cancellation."""
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        seen[note].append("cancelled")
        raise


@task(name="sample.sleep")
async def sleep(seconds: float, note: str = "") -> str:
    """Sleeps, and notes its cancellation."""
    seen[f"started {note}"].append(current_task().attempt)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        seen[note].append("cancelled")
        raise
    return "slept"


@task(name="sample.sleep_in_side_thread")
async def sleep_in_side_thread(path: str, seconds: float) -> None:
    """Sleeps where no cancellation reaches: the coroutine ends, the thread does not."""
    await asyncio.to_thread(leave_mark.func, path, seconds)


@task(name="sample.stop_early")
def stop_early(note: str, how: str = "raise") -> str:
    """Goes on until it is cancelled, then raises or returns."""
    seen[f"started {note}"].append(current_task().attempt)
    deadline = time.monotonic() + 30
    while not current_task().cancelled and time.monotonic() < deadline:
        time.sleep(0.005)
    seen[note].append("noticed")
    if how == "raise":
        raise RuntimeError("stopped early")
    return "stopped early"


@task(name="sample.block_loop")
async def block_loop(seconds: float, note: str = "") -> str:
    """Does what no coroutine should."""
    seen[f"started {note}"].append(current_task().attempt)
    time.sleep(seconds)
    return "blocked"


@task(name="sample.end_processes")
def end_processes(count: int) -> list[int | None]:
    """Forks processes and ends each at once, as multiprocessing's pools do; gives their exit codes."""
    codes = []
    for _ in range(count):
        process = get_context("fork").Process(target=time.sleep, args=(600,))
        process.start()
        process.terminate()
        process.join(10)
        process.kill()
        codes.append(process.exitcode)
    return codes


@task(name="sample.backend_pid")
def backend_pid() -> int:
    """Which database backend Django's ORM uses here."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


@task(name="sample.abackend_pid")
async def abackend_pid() -> int:
    """The same through Django's async path."""
    return await sync_to_async(backend_pid.func)()


@task(name="sample.break_transaction", max_attempts=1)
def break_transaction() -> None:
    """Runs a statement that fails."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1/0")


@task(name="sample.repeat")
def repeat(text: str, times: int) -> str:
    """A long text."""
    return text * times


@task(name="sample.chain")
def chain(left: int) -> int:
    """Enqueues itself until nothing is left."""
    if left:
        chain.enqueue(left - 1)
    return left


@task(name="sample.leave_time")
def leave_time(path: str) -> None:
    """Writes what time it is here, asked in two ways."""
    Path(path).write_text(f"{time.time()} {timezone.now().timestamp()}")


@task(name="sample.leave_mark")
def leave_mark(path: str, seconds: float = 0.0) -> int:
    """Adds 'started <attempt> <pid>' to a file, sleeps, adds 'ended <attempt>'."""
    _add(path, f"started {current_task().attempt} {os.getpid()}")
    time.sleep(seconds)
    _add(path, f"ended {current_task().attempt} {os.getpid()}")
    return current_task().attempt


@task(name="sample.block_loop_at")
async def block_loop_at(path: str, seconds: float) -> int:
    """`leave_mark` where no coroutine should."""
    return leave_mark.func(path, seconds)


@task(name="sample.hang_once", max_attempts=3)
def hang_once(path: str, seconds: float = 60.0) -> int:
    """The first attempt hangs; the second ends at once."""
    _add(path, f"started {current_task().attempt} {os.getpid()}")
    if current_task().attempt == 1:
        time.sleep(seconds)
    return current_task().attempt


def _add(path: str, line: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


@task(name="sample.crowd")
async def crowd(place: str) -> int:
    """Notes how many are in the place, in this process, and stays a moment."""
    seen[f"in {place}"].append(1)
    seen[place].append(len(seen[f"in {place}"]))
    await asyncio.sleep(0.005)
    seen[f"in {place}"].pop()
    return seen[place][-1]

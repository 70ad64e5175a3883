"""FastAPI, one process, an asyncio.Event for each task and no database: about as little as a held request can do."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from fastapi import Body, FastAPI, HTTPException
from fastapi.responses import JSONResponse

Ids = Annotated[list[UUID], Body(embed=True)]

app = FastAPI(openapi_url=None)


@dataclass(slots=True)
class Task:
    """A task in memory."""

    version: int = 2
    status: str = "RUNNING"
    changed: asyncio.Event = field(default_factory=asyncio.Event)


tasks: dict[UUID, Task] = {}
held = 0


@app.post("/tasks")
async def begin(ids: Ids) -> dict[str, int]:
    """Tasks begin to run."""
    tasks.update((task_id, Task()) for task_id in ids)
    return {"tasks": len(tasks)}


@app.post("/finish")
async def finish(ids: Ids) -> JSONResponse:
    """Tasks end."""
    return JSONResponse({"at": [_end(tasks[task_id]) for task_id in ids]})


@app.get("/readyz")
async def readyz() -> dict[str, int]:
    """How many requests are held."""
    return {"held": held}


@app.get("/api/v1/tasks/{task_id}/long_poll")
async def long_poll(
    task_id: UUID, client_known_version: int = 0, max_hold_seconds: float = 25.0
) -> JSONResponse:
    """Answer once the version differs, or the hold runs out."""
    global held
    task = tasks.get(task_id)
    if task is None:
        raise HTTPException(404)
    began = time.monotonic()
    outcome = "CHANGED"
    if task.version == client_known_version:
        held += 1
        try:
            async with asyncio.timeout(max_hold_seconds):
                await task.changed.wait()
        except TimeoutError:
            outcome = "STILL_RUNNING"
        finally:
            held -= 1
    if task.status == "SUCCESS":
        outcome = "TERMINAL"
    return JSONResponse(_answer(task_id, task, outcome, time.monotonic() - began))


def _end(task: Task) -> float:
    task.version, task.status = 3, "SUCCESS"
    task.changed.set()
    return time.monotonic()


def _answer(task_id: UUID, task: Task, outcome: str, held_seconds: float) -> dict[str, Any]:
    return {
        "task_id": str(task_id),
        "status": task.status,
        "version": task.version,
        "outcome": outcome,
        "should_continue_polling": task.status == "RUNNING",
        "hold_duration_ms": round(held_seconds * 1000, 1),
    }

"""A scripted server for tests of what waits: it plays gateways that cut, servers that die, caches that lie."""

from __future__ import annotations

from asyncpoll.client.testing.acts import (
    Act,
    Received,
    answer,
    busy,
    cut,
    failure,
    gzipped,
    half,
    page,
    problem,
    redirect,
    reset,
    silence,
    still_running,
    success,
    trickle,
)
from asyncpoll.client.testing.server import Script, ScriptedServer

__all__ = [
    "Act",
    "Received",
    "Script",
    "ScriptedServer",
    "answer",
    "busy",
    "cut",
    "failure",
    "gzipped",
    "half",
    "page",
    "problem",
    "redirect",
    "reset",
    "silence",
    "still_running",
    "success",
    "trickle",
]

"""Waiting well: a client that submits tasks and waits for their ends, patient with servers and gateways alike."""

from __future__ import annotations

from asyncpoll.client.answer import Answer, InboxEntry, Milestone
from asyncpoll.client.asynchronous import AsyncClient
from asyncpoll.client.clock import set_testing
from asyncpoll.client.errors import (
    AsyncpollError,
    Busy,
    Misused,
    PollLifetimeExceeded,
    Redirected,
    Refused,
    ResponseTooLarge,
    StaleResponseError,
    TaskFailed,
    TaskGone,
    TaskNotFound,
    Unreachable,
)
from asyncpoll.client.exchange import Attempt
from asyncpoll.client.foreign import await_for_terminal, wait_for_terminal
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.synchronous import Client

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncpollError",
    "Attempt",
    "Busy",
    "Client",
    "InboxEntry",
    "Milestone",
    "Misused",
    "PollLifetimeExceeded",
    "PollPolicy",
    "Redirected",
    "Refused",
    "ResponseTooLarge",
    "StaleResponseError",
    "TaskFailed",
    "TaskGone",
    "TaskNotFound",
    "Unreachable",
    "await_for_terminal",
    "set_testing",
    "wait_for_terminal",
]

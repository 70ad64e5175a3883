"""What callers see of the SDK: both clients take the same, and say the same about it."""

from __future__ import annotations

import inspect

import pytest

from asyncpoll.client import AsyncClient, Client, PollPolicy, await_for_terminal, wait_for_terminal

METHODS = [
    "submit", "get", "cancel", "wait", "watch", "as_completed", "wait_all", "wait_any", "notify", "inbox", "acknowledge",
]  # fmt: skip


def parameters(function):
    """Names, defaults and types, but for the client that is waited with."""
    return [
        (one.name, one.default, one.annotation)
        for one in inspect.signature(function).parameters.values()
        if one.name != "client"
    ]


@pytest.mark.parametrize("name", METHODS)
def test_both_clients_have_the_same_methods_in_the_same_words(name):
    """Whoever knows one knows the other."""
    blocking, asynchronous = getattr(Client, name), getattr(AsyncClient, name)
    assert parameters(blocking) == parameters(asynchronous)
    assert blocking.__doc__ == asynchronous.__doc__


def test_neither_client_has_more_than_the_other():
    """Except for how it is closed."""
    public = [
        {name for name in vars(kind) if not name.startswith("_")} for kind in (Client, AsyncClient)
    ]
    assert public == [{*METHODS, "close"}, {*METHODS, "aclose"}]


def test_defaults_are_those_of_the_documentation():
    """Ten minutes for a wait; 80 s, 0.4 s and 5 s at endpoints that only short-poll."""
    assert parameters(wait_for_terminal) == parameters(await_for_terminal)
    defaults = {name: default for name, default, _ in parameters(wait_for_terminal)}
    assert (defaults["timeout"], defaults["interval"], defaults["max_interval"]) == (80, 0.4, 5)
    policy = PollPolicy()
    assert (policy.lifetime_seconds, policy.call_seconds, policy.hold_seconds) == (600, 60, 25)

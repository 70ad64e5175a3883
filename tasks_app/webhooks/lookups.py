"""Names looked up once, in threads that nobody waits for when the process ends."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future
from functools import partial
from ipaddress import ip_address

from tasks_app.webhooks.addresses import is_public
from tasks_app.webhooks.places import Places
from tasks_app.webhooks.targets import Hook

# A resolver may take half a minute to give up, and asyncio's own threads are for others.
_MOST_AT_ONCE = 32
_lock = threading.Lock()
_places = Places(_MOST_AT_ONCE, most_each=1)
_running: dict[str, Future[list[str]]] = {}


class LookupFailed(Exception):
    """A name could not be looked up."""


class AddressRefused(Exception):
    """A name stands for an address that nothing is sent to."""


async def addresses_of(hook: Hook, owner: str) -> list[str]:
    """The addresses that `hook` may be sent to, the resolver's favourite first. Raises LookupFailed or AddressRefused.

    A single one that is not public refuses the name: a name that is somebody's, and stands for the inside as well, is
    a trap or a mistake.
    """
    found = [hook.host] if _is_address(hook.host) else await _look_up(hook.host, owner)
    if not hook.is_for_tests and not all(is_public(address) for address in found):
        raise AddressRefused(f"{hook.host} stands for an address that is not public.")
    return found


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def _look_up(host: str, owner: str) -> list[str]:
    try:
        return await asyncio.wrap_future(_running_for(host, owner))
    except (OSError, UnicodeError) as error:
        raise LookupFailed(f"{host} can't be looked up: {error}.") from error


def _running_for(host: str, owner: str) -> Future[list[str]]:
    """The look-up of this name: one at a time, whoever asks, so that a slow name takes one place. Raises LookupFailed."""
    with _lock:
        if host in _running:
            return _running[host]
        if not _places.is_free(owner, host):
            raise LookupFailed(f"{host}: too many names are being looked up already.")
        answer: Future[list[str]] = Future()
        # Who stops waiting does not end it for the others.
        answer.set_running_or_notify_cancel()
        thread = threading.Thread(
            target=_work, args=(host, owner, answer), name="asyncpoll-lookup", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # the system gives no more threads now
            raise LookupFailed(f"{host} can't be looked up now: {error}.") from error
        _places.take(owner, host)
        _running[host] = answer
        return answer


def _work(host: str, owner: str, answer: Future[list[str]]) -> None:
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        outcome = partial(answer.set_result, list(dict.fromkeys(str(info[4][0]) for info in infos)))
    except Exception as error:  # whatever it is, somebody waits for it
        outcome = partial(answer.set_exception, error)
    with _lock:
        del _running[host]
        _places.leave(owner, host)
    outcome()

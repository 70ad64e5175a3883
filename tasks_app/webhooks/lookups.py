"""Names looked up once, in threads that nobody waits for when the process ends."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from tasks_app.webhooks.addresses import is_public
from tasks_app.webhooks.targets import Hook

# A resolver may take half a minute to give up, and asyncio's own threads are for others.
_MOST_AT_ONCE = 32
_running = threading.BoundedSemaphore(_MOST_AT_ONCE)


class LookupFailed(Exception):
    """A name could not be looked up."""


class AddressRefused(Exception):
    """A name stands for an address that nothing is sent to."""


async def addresses_of(hook: Hook) -> list[str]:
    """The addresses that `hook` may be sent to, the resolver's favourite first. Raises LookupFailed or AddressRefused.

    A single one that is not public refuses the name: a name that is somebody's, and stands for the inside as well, is
    a trap or a mistake.
    """
    found = [hook.host] if _is_address(hook.host) else await _look_up(hook.host, hook.port)
    if not hook.is_for_tests and not all(is_public(address) for address in found):
        raise AddressRefused(f"{hook.host} stands for an address that is not public.")
    return found


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def _look_up(host: str, port: int) -> list[str]:
    if not _running.acquire(blocking=False):
        raise LookupFailed(f"{host}: too many names are being looked up already.")
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[list[str] | OSError] = loop.create_future()

    def work() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer: Any = list(dict.fromkeys(str(info[4][0]) for info in infos))
        except (OSError, UnicodeError) as error:
            answer = OSError(str(error))
        finally:
            _running.release()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_give, answered, answer)

    try:
        threading.Thread(target=work, name="asyncpoll-lookup", daemon=True).start()
    except RuntimeError as error:  # the system gives no more threads now
        _running.release()
        raise LookupFailed(f"{host} can't be looked up now: {error}.") from error
    found = await answered
    if isinstance(found, OSError):
        raise LookupFailed(f"{host} can't be looked up: {found}.")
    return found


def _give(answered: asyncio.Future[Any], answer: Any) -> None:
    if not answered.done():
        answered.set_result(answer)

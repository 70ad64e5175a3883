"""What `manage.py serve` does, in one process or as the parent of several."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.autoreload import get_child_arguments
from django.utils.module_loading import import_string

from tasks_app import conf
from tasks_app.errors import ConfigurationError
from tasks_app.scrapes.siblings import meeting_place
from tasks_app.serving import limits
from tasks_app.serving.handler import get_asgi_application
from tasks_app.serving.processes import READY, Parent, Word
from tasks_app.serving.safety import host_of, refuse_exposure
from tasks_app.serving.sockets import listen, listen_slots, url_of
from tasks_app.serving.wiring import among_siblings, wiring_of
from tasks_app.store.migrated import refuse_unmigrated

Say = Callable[[str], object]


def serve(host: str, port: int, processes: int, say: Say) -> None:
    """Serve on `host` and `port` until SIGTERM or SIGINT. Raises ConfigurationError if that can't be."""
    refuse_exposure(host)
    _raise_open_files(say)
    _say_whose(say)
    if processes == 1:
        listener = listen(host, port)
        url = url_of(listener)
        _run(listener.detach(), lambda: say(_serving_on(url, 1)), socket_ends=True)
        return
    refuse_unmigrated("serve")
    listeners = listen_slots(host, port, processes)
    url = url_of(listeners[0])
    with meeting_place() as place:
        command = [*get_child_arguments(), "--siblings", str(place)]
        parent = Parent(command, listeners, lambda: say(_serving_on(url, processes)))
        asyncio.run(parent.run())


def serve_child(fd: int, leash: int, siblings: str) -> None:
    """Serve on the listening socket `fd` until SIGTERM, or until the parent at the other end of `leash` has died.

    `siblings` is the directory in which those meet who serve the same port.
    """
    leash_socket = socket.socket(fileno=leash)
    _run(fd, lambda: leash_socket.send(READY), leash_socket, siblings=Path(siblings))


def serve_socket(fd: int, say: Say) -> None:
    """Serve on a listening socket that was inherited, for example from systemd. Raises ConfigurationError."""
    refuse_exposure(host_of(fd))
    _raise_open_files(say)
    _say_whose(say)
    _run(fd, lambda: say(f"Serving on file descriptor {fd}."))


def _run(
    fd: int,
    when_ready: Callable[[], object],
    leash: socket.socket | None = None,
    *,
    socket_ends: bool = False,
    siblings: Path | None = None,
) -> None:
    application = _application()
    wiring = wiring_of(application)
    if siblings is not None:
        wiring = among_siblings(wiring, siblings)
    wiring.drain.limit_to(limits.raise_open_files(conf.current().MAX_HELD))
    _quieten()
    # Its import installs the reactor, which nothing but a serving process should have.
    from tasks_app.serving.daphne_server import DrainingServer

    server = DrainingServer(application, fd, wiring, when_ready, socket_ends)
    if leash is not None:
        leash.setblocking(False)
        server.loop.add_reader(leash, _follow, server, leash)
    server.run()
    if isinstance(server.failure, OSError):
        raise ConfigurationError(
            f"Nothing can be served on file descriptor {fd} ({server.failure}); pass a listening socket."
        ) from server.failure
    if server.failure is not None:
        raise server.failure


def _follow(server: Any, leash: socket.socket) -> None:
    """Do as the parent says, or as is left to do when it is gone."""
    word = leash.recv(1)
    if not word:
        server.loop.remove_reader(leash)
    if word == Word.HANDED_OVER.value:
        server.hand_over()
    else:
        server.socket_ends = True
        server.begin_drain()


def _application() -> Any:
    path = getattr(settings, "ASGI_APPLICATION", None)
    if not path:
        return get_asgi_application()
    try:
        return import_string(path)
    except ImportError as error:
        raise ConfigurationError(
            f"ASGI_APPLICATION is {path!r}, which can't be imported ({error}); "
            "name the application of your asgi.py, for example 'mysite.asgi.application'."
        ) from error


def _say_whose(say: Say) -> None:
    """A project that has an application of its own may not know that nobody has been told of it."""
    if not getattr(settings, "ASGI_APPLICATION", None):
        say(
            "ASGI_APPLICATION is not set, so asyncpoll's own application serves the project; if your asgi.py does more, "
            "set it to that, for example to 'mysite.asgi.application'."
        )


def _raise_open_files(say: Say) -> None:
    most_held = conf.current().MAX_HELD
    warning = limits.shortage(limits.raise_open_files(most_held), most_held)
    if warning:
        say(warning)


def _quieten() -> None:
    """daphne tells of each endpoint; the address is said once, by us."""
    logging.getLogger("daphne.server").setLevel(logging.WARNING)


def _serving_on(url: str, processes: int) -> str:
    return f"Serving on {url}" + (f" with {processes} processes." if processes > 1 else ".")

"""Listening sockets, and errors that say what to do when there can be none."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys

from tasks_app.errors import ConfigurationError

# A reconnect wave must wait in the queue and not lose its SYNs; the kernel cuts this to its own limit.
BACKLOG = 4096

_LINUX = sys.platform.startswith("linux")

# A filter of four instructions for what arrives at a socket: load the byte of the TCP flags; if SYN is set, keep
# nothing of the packet; else all of it.
_SO_ATTACH_FILTER = 26
_NO_SYN = struct.pack(
    "HBBI" * 4, 0x30, 0, 0, 13, 0x45, 0, 1, 0x02, 0x06, 0, 0, 0, 0x06, 0, 0, 0xFFFFFFFF
)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on `host` and `port` (0: any free one). Raises ConfigurationError if there can't be one."""
    return _listen(host, port, shared=False)


def listen_slots(host: str, port: int, count: int) -> list[socket.socket]:
    """One listening socket for each of `count` processes, all on the same port.

    Each has a queue of its own, which outlives its process as long as this one keeps the socket open. Raises
    ConfigurationError.
    """
    # Elsewhere SO_REUSEPORT lets several sockets have one port but gives all connections to one of them.
    if not _LINUX:
        first = listen(host, port)
        return [first, *(first.dup() for _ in range(count - 1))]
    # SO_REUSEPORT would let a second server of the same user in without a word, so a plain bind asks first.
    _bind(host, port, shared=False).close()
    first = _listen(host, port, shared=True)
    return [
        first,
        *(_listen(host, first.getsockname()[1], shared=True) for _ in range(count - 1)),
    ]


def turn_away(listener: socket.socket) -> bool:
    """Let no further connection begin on `listener`; who tries sees nothing until it closes. False where that can't be.

    It acts on the socket and so on every process that has a copy.
    """
    if not _LINUX:
        return False
    code = ctypes.create_string_buffer(_NO_SYN, len(_NO_SYN))
    program = struct.pack("HP", len(_NO_SYN) // 8, ctypes.addressof(code))
    try:
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    except OSError:  # some sandboxes know no filters
        return False
    return True


def url_of(listener: socket.socket) -> str:
    """Where a browser finds what listens there."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int, *, shared: bool) -> socket.socket:
    listener = _bind(host, port, shared=shared)
    listener.listen(BACKLOG)
    return listener


def _bind(host: str, port: int, *, shared: bool) -> socket.socket:
    family, address = _resolve(host, port)
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise ConfigurationError(_why_not(host, port, error)) from error
    return bound


def _resolve(
    host: str, port: int
) -> tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"Host {host!r} is not an address of this machine; give one with --host, for example 127.0.0.1."
        ) from error
    # "localhost" is often both, and clients try IPv4 when they were told a bare name.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address  # type: ignore[return-value]


def _why_not(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} of {host} is taken; stop what listens there, or choose another with --port."
        case errno.EACCES:
            return f"Port {port} needs privileges that this user lacks; choose one from 1024 up with --port."
        case errno.EADDRNOTAVAIL:
            return f"Host {host!r} is not an address of this machine; give one with --host, for example 127.0.0.1."
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"Nothing can listen on port {port} of {host} ({reason}); choose others with --host and --port."

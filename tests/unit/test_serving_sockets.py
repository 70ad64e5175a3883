"""Listening sockets, and what is said when there can be none."""

from __future__ import annotations

import errno
import socket
import sys

import pytest

from tasks_app.errors import ConfigurationError
from tasks_app.serving import sockets
from tasks_app.serving.sockets import listen, listen_slots, url_of


def test_port_0_takes_a_free_one_and_it_is_named() -> None:
    """The address that is printed is the one that is there."""
    with listen("127.0.0.1", 0) as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
        socket.create_connection(listener.getsockname()).close()


def test_an_ipv6_address_is_written_in_brackets() -> None:
    """Or a browser takes its colons for the port's."""
    with listen("::1", 0) as listener:
        assert url_of(listener).startswith("http://[::1]:")


def test_slots_share_one_port() -> None:
    """With a queue each."""
    slots = listen_slots("127.0.0.1", 0, 3)
    assert len({slot.getsockname() for slot in slots}) == 1
    assert len({slot.fileno() for slot in slots}) == 3
    for slot in slots:
        slot.close()


def test_where_the_kernel_does_not_balance_slots_are_one_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each process takes what it can from the same queue."""
    monkeypatch.setattr(sockets, "_LINUX", False)
    first, second = listen_slots("127.0.0.1", 0, 2)
    assert first.getsockname() == second.getsockname()
    if sys.platform.startswith("linux"):
        assert not first.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)
    first.close()
    second.close()


@pytest.mark.parametrize("count", [1, 2])
def test_a_taken_port_is_named_with_the_remedy(count: int) -> None:
    """Also one that a process of the same user shares willingly."""
    taken = listen_slots("127.0.0.1", 0, count)
    port = taken[0].getsockname()[1]
    for attempt in (lambda: listen("127.0.0.1", port), lambda: listen_slots("127.0.0.1", port, 2)):
        with pytest.raises(
            ConfigurationError, match=f"Port {port} of 127.0.0.1 is taken; stop what"
        ):
            attempt()
    for listener in taken:
        listener.close()


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "a" * 70 + ".x"])
def test_a_host_that_is_not_here_is_named_with_the_remedy(host: str) -> None:
    """An address of another machine, an unknown name, no name at all."""
    with pytest.raises(
        ConfigurationError, match=r"is not an address of this machine; give one with --host"
    ):
        listen(host, 0)


def test_a_privileged_port_is_named_with_the_remedy() -> None:
    """Tests may run as root, who may bind it, so the kernel's answer is given."""
    why = sockets._why_not("127.0.0.1", 80, OSError(errno.EACCES, "Permission denied"))
    assert (
        why == "Port 80 needs privileges that this user lacks; choose one from 1024 up with --port."
    )
    other = sockets._why_not("127.0.0.1", 80, OSError(errno.EMFILE, "Too many open files"))
    assert "Too many open files" in other


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux filters sockets")
def test_who_comes_after_the_others_were_turned_away_is_not_connected() -> None:
    """Those in the queue are accepted, nobody joins them, and nobody is reset when the socket closes."""
    with listen("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as first:
            assert sockets.turn_away(listener)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.3)
            accepted, _ = listener.accept()
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()
            listener.close()
            with accepted:
                first.sendall(b"still there")
                assert accepted.recv(100) == b"still there"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)

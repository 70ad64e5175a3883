"""The embedded Valkey: private, alike after its death, and gone with whoever started it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import psutil
import pytest
from redis import Redis

from asyncpoll.embedded import EmbeddedError, valkey
from asyncpoll.embedded.valkey import Valkey
from tests.places import reachable_directory
from tests.support import eventually


@pytest.fixture
def data_dir():
    """With a short path, unlike pytest's."""
    with reachable_directory() as directory:
        yield directory


def servers(directory):
    """The servers whose socket is below `directory`."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any("valkey" in word for word in words[:1]) and any(
            str(directory) in word for word in words
        ):
            found.append(process)
    return found


def test_it_answers_on_a_socket_that_nobody_else_can_reach(data_dir):
    """And on no port."""
    with Valkey(data_dir) as server:
        client = Redis.from_url(server.url)
        assert client.ping()
        assert client.config_get("port") == {"port": "0"}
        client.close()
        place = data_dir / "valkey"
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert stat.S_IMODE((place / "socket").stat().st_mode) == 0o600
        assert stat.S_IMODE((data_dir / "valkey.log").stat().st_mode) == 0o600
    assert servers(data_dir) == []
    assert list(place.iterdir()) == []


def test_a_long_path_is_no_obstacle(data_dir):
    """A socket's path may have about a hundred bytes."""
    deep = data_dir / ("d" * 120)
    deep.mkdir()
    with Valkey(deep) as server:
        assert Redis.from_url(server.url).ping()
        assert str(deep) not in server.url


def test_it_is_started_again_at_the_same_address(data_dir):
    """Only if it has died."""
    with Valkey(data_dir) as server:
        assert not server.revive()
        (process,) = servers(data_dir)
        process.kill()
        eventually(lambda: server.revive())
        assert Redis.from_url(server.url).ping()


def test_it_ends_with_whoever_started_it(data_dir):
    """Even if that was killed."""
    script = (
        "import sys, time; from pathlib import Path; from asyncpoll.embedded.valkey import Valkey; "
        "Valkey(Path(sys.argv[1])).start(); print('up', flush=True); time.sleep(600)"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", script, str(data_dir)], stdout=subprocess.PIPE, env=os.environ
    )
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"up\n"
    assert len(servers(data_dir)) == 1
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    eventually(lambda: servers(data_dir) == [])


def test_without_the_wheel_there_are_three_remedies(monkeypatch):
    """Install it, name a server, or do with one process."""
    monkeypatch.setattr(valkey, "WHEEL", "no-such-wheel")
    with pytest.raises(EmbeddedError, match=r"pip install .*CHANNEL_REDIS_URL .*--web 1"):
        valkey.installed()

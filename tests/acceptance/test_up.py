"""`manage.py up` as a newcomer meets it: real processes, a real port, a real database."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from tests.places import newcomers_environment, reachable_directory
from tests.programs import program
from tests.support import eventually, free_port

PROJECT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60.0
STOP_WITHIN_SECONDS = 10.0


def environment(database_url: str = "") -> dict[str, str]:
    """A newcomer's, perhaps with a database."""
    return newcomers_environment(**({"DATABASE_URL": database_url} if database_url else {}))


def command(data_dir: Path, port: int, *more: str) -> list[str]:
    """The command line of `up`."""
    arguments = ["--data-dir", str(data_dir), "--port", str(port), *more]
    return [sys.executable, "manage.py", "up", *arguments]


class Up:
    """A running `manage.py up`, its screen, and every process it has started."""

    def __init__(self, data_dir: Path, port: int, *more: str, database_url: str = "") -> None:
        self.data_dir = data_dir
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"
        self._output = data_dir.with_name(f"{data_dir.name}.{port}.txt")
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                command(data_dir, port, *more),
                cwd=PROJECT,
                env=environment(database_url),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._family: set[psutil.Process] = set()

    def ready(self) -> Up:
        """Wait for the screen."""
        eventually(
            lambda: "asyncpoll is up" in self.screen() or self.process.poll() is not None,
            PATIENCE_SECONDS,
        )
        assert self.process.poll() is None, self.screen()
        return self

    def screen(self) -> str:
        """What it has printed so far."""
        return self._output.read_text()

    def family(self) -> set[psutil.Process]:
        """Every process that it or its children started, dead or alive."""
        if self.process.poll() is None:
            self._family |= set(psutil.Process(self.process.pid).children(recursive=True))
        return self._family

    def child(self, word: str) -> psutil.Process | None:
        """The child whose command line has `word` in it."""
        children = (
            psutil.Process(self.process.pid).children() if self.process.poll() is None else []
        )
        return next((child for child in children if word in words_of(child)), None)

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send a signal and return the exit code."""
        self.family()
        self.process.send_signal(number)
        return self.process.wait(STOP_WITHIN_SECONDS)

    def close(self) -> None:
        """Whatever the test left running."""
        if self.process.poll() is None:
            self.stop()


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing of one that has ended, reaped or not, or is not ours to ask."""
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def lives(process: psutil.Process) -> bool:
    """True unless the process ended, reaped or not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def refused(data_dir: Path, port: int, database_url: str = "") -> str:
    """The one sentence of an `up` that can't start."""
    done = subprocess.run(
        command(data_dir, port),
        cwd=PROJECT,
        env=environment(database_url),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr.strip()


@pytest.fixture(scope="module")
def kept() -> Iterator[list[Up]]:
    """The last one is an `up` on the embedded Postgres; whoever ends it puts its successor there."""
    with reachable_directory() as directory:
        kept = [Up(directory / "data", free_port()).ready()]
        yield kept
        kept[-1].close()


@pytest.fixture
def running(kept: list[Up]) -> Up:
    """That one, which most tests leave running."""
    if kept[-1].process.poll() is not None:
        kept.append(succeeded(kept[-1]))
    return kept[-1]


def succeeded(up: Up) -> Up:
    """The next `up` on the same data directory and port."""
    return Up(up.data_dir, up.port).ready()


def postmasters(up: Up) -> list[psutil.Process]:
    """The servers of its data directory, whoever started them."""
    servers = [each for each in psutil.process_iter(["name"]) if each.info["name"] == "postgres"]
    own = [each for each in servers if any(str(up.data_dir) in word for word in words_of(each))]
    # What a server has just forked still looks like it.
    return [each for each in own if each.ppid() not in {server.pid for server in own}]


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data directory of the test's own."""
    with reachable_directory() as directory:
        yield directory / "data"


def test_the_screen_shows_what_works(running: Up) -> None:
    """The server is ready, and the admin's password opens the admin."""
    assert httpx.get(f"{running.origin}/readyz").status_code == 200
    found = re.search(r"(http://\S+/admin/)\s+\(user (\S+), password (\S+)\)", running.screen())
    assert found is not None, running.screen()
    with httpx.Client(follow_redirects=True) as browser:
        page = browser.get(found[1])
        form = {
            "username": found[2],
            "password": found[3],
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        }
        answer = browser.post(str(page.url), data=form, headers={"Referer": str(page.url)})
    assert answer.status_code == 200
    assert "Log out" in answer.text
    assert "asyncpoll" in answer.text and "Django administration" not in answer.text


def test_the_screen_names_the_page_of_the_api(running: Up) -> None:
    """Which a browser can open."""
    found = re.search(r"http://\S+/docs\b", running.screen())
    assert found is not None, running.screen()
    assert "text/html" in httpx.get(found[0]).headers["content-type"]


def test_the_screen_names_the_demo_page(running: Up) -> None:
    """With everything that it loads."""
    found = re.search(r"Demo +(http://\S+/demo)$", running.screen(), re.MULTILINE)
    assert found is not None, running.screen()
    page = httpx.get(found[1])
    parts = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(parts) > 3
    for part in parts:
        answer = httpx.get(page.url.join(part), follow_redirects=True)
        assert answer.status_code == 200, part


def test_a_browser_s_icon_is_served_without_a_warning(running: Up) -> None:
    """Browsers ask for it with every page, unasked."""
    answer = httpx.get(f"{running.origin}/favicon.ico", follow_redirects=True)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert "favicon" not in running.screen()


def test_the_admins_style_sheets_are_served(running: Up) -> None:
    """Without collectstatic and without debug."""
    answer = httpx.get(f"{running.origin}/static/admin/css/base.css")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/css")


def test_the_lines_to_paste_submit_a_task_and_wait_for_its_end(running: Up) -> None:
    """In a shell, as they stand on the screen, under which nothing is written while all is well."""
    program("curl")
    lines = [line.strip() for line in running.screen().splitlines() if "curl" in line]
    done = subprocess.run(
        ["sh", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    change, end = (json.loads(line) for line in done.stdout.splitlines())
    assert change["outcome"] in ("CHANGED", "TERMINAL")
    assert end["status"] == "SUCCESS"
    assert len(end["result"]["distributions"]) == 3
    assert "INFO" not in running.screen() and "Serving on" not in running.screen()


def test_a_second_up_on_the_same_data_directory_is_refused(running: Up) -> None:
    """On another port; the first one does not notice."""
    sentence = refused(running.data_dir, free_port())
    assert (
        f"Another `manage.py up` (pid {running.process.pid}) runs on {running.data_dir}" in sentence
    )
    assert httpx.get(f"{running.origin}/readyz").status_code == 200


@pytest.mark.parametrize("word", ["serve", "runworker"])
def test_a_child_that_was_killed_is_started_again(running: Up, word: str) -> None:
    """A new process takes its place, and the log has a line about it."""
    first = running.child(word)
    assert first is not None
    first.kill()
    eventually(lambda: (child := running.child(word)) is not None and child.pid != first.pid)
    eventually(lambda: answers(running))
    assert "was killed by signal 9" in running.screen()


def test_a_postgres_that_was_killed_is_started_again(running: Up) -> None:
    """The postmaster with SIGKILL: everybody reconnects to its successor, and what was stored is there."""
    task = httpx.post(f"{running.origin}/api/v1/tasks", json={"task": "demo.dependency_report"})
    (postmaster,) = postmasters(running)
    postmaster.kill()
    eventually(lambda: "Postgres had ended; it was started again." in running.screen())
    eventually(lambda: answers(running))
    again = httpx.get(f"{running.origin}/api/v1/tasks/{task.json()['task_id']}")
    assert again.status_code == 200


def answers(up: Up) -> bool:
    """True if the server is ready."""
    try:
        return httpx.get(f"{up.origin}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_management_commands_join_the_same_server(running: Up) -> None:
    """`manage.py shell` without a DATABASE_URL sees the admin that `up` made."""
    count = "from django.contrib.auth.models import User; print(User.objects.get().username)"
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", count],
        cwd=PROJECT,
        env=newcomers_environment(ASYNCPOLL_DATA_DIR=str(running.data_dir)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "admin", done.stderr
    assert answers(running)


def test_ctrl_c_stops_everything_and_data_survives_the_restart(running: Up, kept: list[Up]) -> None:
    """No process is left within 10 s; the task and the admin's password are there the next time."""
    submitted = httpx.post(
        f"{running.origin}/api/v1/tasks", json={"task": "demo.dependency_report"}
    )
    password = re.search(r"password (\S+)\)", running.screen())
    family = {*running.family(), *postmasters(running)}
    assert running.stop() == 0
    assert "Stopping ..." in running.screen()
    eventually(lambda: not any(map(lives, family)))
    assert len(family) >= 3
    kept.append(again := succeeded(running))
    task = httpx.get(f"{again.origin}/api/v1/tasks/{submitted.json()['task_id']}")
    assert task.status_code == 200
    assert password is not None and password[0] in again.screen()


def test_children_do_not_outlive_an_up_that_was_killed(running: Up, kept: list[Up]) -> None:
    """And the next one joins the server that it left."""
    children = [child for child in (running.child("serve"), running.child("runworker")) if child]
    (postmaster,) = postmasters(running)
    running.stop(signal.SIGKILL)
    assert len(children) == 2
    eventually(lambda: not any(map(lives, children)))
    kept.append(again := succeeded(running))
    assert postmasters(again) == [postmaster]


def test_a_taken_port_is_refused_before_anything_starts(data_dir: Path) -> None:
    """No cluster was made."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        sentence = refused(data_dir, other.getsockname()[1])
    assert "another program listens there" in sentence
    assert not (data_dir / "postgres").exists()


def test_an_unreachable_database_is_refused_without_showing_its_password(data_dir: Path) -> None:
    """Nothing embedded is started in its place."""
    port = free_port()
    sentence = refused(data_dir, free_port(), f"postgresql://me:hidden@127.0.0.1:{port}/tasks")
    assert f"The database tasks on 127.0.0.1, port {port}" in sentence
    assert "hidden" not in sentence
    assert not (data_dir / "postgres").exists()


def test_a_database_url_is_used_as_it_is_and_its_admin_left_alone(
    data_dir: Path, database_url: str
) -> None:
    """An admin who was there before keeps the password, and the screen says so."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name,"
            " last_name, email, date_joined) VALUES ('admin', '!', true, true, true, '', '', '', now())"
        )
    up = Up(data_dir, free_port(), database_url=database_url).ready()
    try:
        assert "user admin, with the password it had before" in up.screen()
        assert not (data_dir / "postgres").exists()
        assert up.stop(signal.SIGTERM) == 0
        eventually(lambda: not any(map(lives, up.family())))
    finally:
        up.close()


def parts(up: Up) -> set[str]:
    """What its web processes are to each other, as far as a few connections meet them and they hear commits."""
    found = set()
    for _ in range(12):
        try:
            said = httpx.get(f"{up.origin}/readyz").json()
        except (httpx.TransportError, ValueError):
            continue
        found.add(said["bridge"] if (said["link"], said["layer"]) == ("up", "up") else "deaf")
    return found


def test_several_web_processes_share_wake_ups_through_a_valkey_of_their_own(data_dir: Path) -> None:
    """One relays, the others stand by. A Valkey that was killed is started again, and ends with the others."""
    up = Up(data_dir, free_port(), "--web", "3", "--workers", "0").ready()
    try:
        eventually(lambda: parts(up) == {"leader", "standby"}, PATIENCE_SECONDS)
        (valkey,) = [process for process in up.family() if process.name() == "valkey-server"]
        valkey.kill()
        eventually(lambda: "Valkey had ended; it was started again." in up.screen())
        eventually(lambda: parts(up) == {"leader", "standby"}, PATIENCE_SECONDS)
        assert up.stop() == 0
        eventually(lambda: not any(map(lives, up.family())))
        assert "Traceback" not in up.screen().rpartition("Stopping ...")[2]
    finally:
        up.close()

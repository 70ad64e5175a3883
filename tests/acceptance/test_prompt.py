"""The installed wheel, and `asyncpoll` at the prompt: real processes, a real server, and a test that does the work."""

from __future__ import annotations

import json
import os
import pty
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import installed
from tests.acceptance.processes import server
from tests.databases import created
from tests.external_tasks import QUEUE
from tests.support import eventually

TASK = "sample.anything"
NO_TASK = "01a22cd1-5617-761b-bc92-fb57ee6aca68"
PATIENCE_SECONDS = 60.0
Asyncpoll = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs of a fresh environment are that has the wheel without extras."""
    directory = tmp_path_factory.mktemp("installed")
    return installed.environment(directory / "venv", installed.wheel(directory))


@pytest.fixture(scope="module")
def url(migrated_template: str) -> Iterator[str]:
    """Where a server answers; no worker is there but the test."""
    with created(os.environ["DATABASE_URL"], migrated_template) as database:
        with server("daphne", database, ASYNCPOLL_LEASE_SECONDS="120") as (port, _):
            yield f"http://127.0.0.1:{port}"


class Executor:
    """Does the work of one task at a time, step by step, when the test wants it."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/api/v1/", timeout=PATIENCE_SECONDS)
        self.claimed: dict[str, Any] = {}

    def submit(self, **fields: Any) -> str:
        """Submit a task without the command, and give its id."""
        return str(self._post("tasks", task=TASK, **fields)["task_id"])

    def claim(self) -> str:
        """Take the next task, and give its id."""
        claim = {"claim_id": secrets.token_hex(8), "max_hold_seconds": 20}
        (self.claimed,) = self._post(f"queues/{QUEUE}/claim", **claim)["tasks"]
        return str(self.claimed["task_id"])

    def step(self, **said: Any) -> None:
        """Report on it."""
        token = self.claimed["lease_token"]
        self._post(f"tasks/{self.claimed['task_id']}/steps", lease_token=token, **said)

    def status(self, task_id: str) -> str:
        """As the server sees it."""
        return str(self._http.get(f"tasks/{task_id}").raise_for_status().json()["status"])

    def _post(self, path: str, **body: Any) -> Any:
        return self._http.post(path, json=body).raise_for_status().json()


@pytest.fixture
def executor(url: str) -> Executor:
    """Of this test."""
    return Executor(url)


@pytest.fixture
def line(programs: Path, url: str) -> Callable[..., dict[str, Any]]:
    """How to start the installed `asyncpoll` with arguments."""

    def start(*arguments: str, **environment: str) -> dict[str, Any]:
        return {
            "args": [str(programs / "asyncpoll"), *arguments],
            "env": {**os.environ, "ASYNCPOLL_URL": url, **environment},
            "text": True,
        }

    return start


@pytest.fixture
def asyncpoll(line: Callable[..., dict[str, Any]]) -> Asyncpoll:
    """Runs it to its end."""

    def run(
        *arguments: str, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            **line(*arguments, **environment),
            input=stdin,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    return run


@pytest.fixture
def begun(line: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    """Runs it beside the test; what is left of it at the end is killed."""

    @contextmanager
    def begin(*arguments: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            **line(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    return begin


@pytest.fixture
def submitted(executor: Executor) -> str:
    """A task that nobody has begun."""
    return executor.submit()


def without_times(text: str) -> list[str]:
    """Lines, without the time they begin with."""
    return re.sub(r"^\d\d:\d\d:\d\d ", "", text, flags=re.MULTILINE).splitlines()


ABOUT = """
import importlib.metadata as metadata, importlib.util, json
print(json.dumps({
    "needs": [one for one in metadata.requires("asyncpoll") if "extra ==" not in one],
    "server": [one for one in metadata.requires("asyncpoll") if one.endswith('extra == "server"')],
    "there": [one.name for one in metadata.distributions()],
    "importable": [one for one in ("django", "channels", "psycopg", "rich") if importlib.util.find_spec(one)],
    "plugins": [one.value for one in metadata.entry_points(group="pytest11")],
    "typed": any(one.match("asyncpoll/py.typed") for one in metadata.files("asyncpoll")),
}))
"""


def test_installing_brings_httpx_and_nothing_of_django(programs):
    """The wheel without extras."""
    about = json.loads(subprocess.check_output([programs / "python", "-Ic", ABOUT]))
    assert about["needs"] == ["httpx<1,>=0.28"]
    assert any(one.startswith("django<") for one in about["server"])
    assert {"asyncpoll", "httpx"} < set(about["there"])
    assert about["importable"] == []
    assert "asyncpoll.pytest_plugin" in about["plugins"]
    assert about["typed"]


WAIT = """
import sys
from asyncpoll.client import Client
with Client(sys.argv[1]) as client:
    task = client.submit("sample.anything", kwargs={"n": 6})
    print(task.task_id, flush=True)
    print(client.wait(task.task_id).raise_for_failure().result)
"""


def test_the_wheel_brings_all_that_the_sources_have(programs):
    """Statements, migrations, commands, templates, static files, types: what is missing would be missed at run time."""
    (packages,) = programs.parent.glob("lib/python*/site-packages")
    sources = [
        file.relative_to(installed.ROOT)
        for package in ("asyncpoll", "tasks_app")
        for file in (installed.ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]
    assert {".py", ".sql", ".html", ".js", ".ts", ".css", ".typed"} <= {
        file.suffix or file.name for file in sources
    }
    assert [str(file) for file in sources if not (packages / file).is_file()] == []


def test_what_is_installed_waits_for_a_task(programs, url, executor):
    """With the client, from submission to result."""
    command = [programs / "python", "-Ic", WAIT, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert f"{executor.claim()}\n" == process.stdout.readline()
        assert executor.claimed["kwargs"] == {"n": 6}
        executor.step(status="SUCCESS", result=42)
        assert process.communicate(timeout=PATIENCE_SECONDS)[0] == "42\n"


def test_measurements_become_a_plan_without_django_and_without_a_server(asyncpoll):
    """More of them than are kept where sketches are installed."""
    rows = "".join(f"build,{number}\n" for number in range(1, 25_001))
    done = asyncpoll("plan", "-", "--format", "json", stdin=f"task,duration_ms\n{rows}")
    assert (done.returncode, done.stderr) == (0, "")
    [plan] = json.loads(done.stdout)["plans"]
    assert (plan["samples"], plan["p50_ms"], plan["p99_ms"]) == (25_000, 12_500, 24_750)


def test_the_result_is_on_stdout_and_what_happened_meanwhile_on_stderr(begun, executor):
    """A line for each change, as it happens."""
    with begun("submit", TASK, "pages=[1, 2]", "name=Ada", "--wait") as process:
        said = [process.stderr.readline()]
        executor.claim()
        said.append(process.stderr.readline())
        executor.step(progress=0.42, message="two pages read")
        said.append(process.stderr.readline())
        executor.step(status="SUCCESS", result={"pages": 2, "größe": "\x1b[2J"})
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert executor.claimed["kwargs"] == {"pages": [1, 2], "name": "Ada"}
    assert without_times("".join(said) + err) == [
        "PENDING",
        "RUNNING",
        "RUNNING 42 % two pages read",
        "SUCCESS",
    ]
    assert out == '{\n  "pages": 2,\n  "größe": "\\u001b[2J"\n}\n'
    assert process.returncode == 0


def test_every_milestone_is_a_line_of_json(asyncpoll, submitted, executor):
    """And the task with its result is the last."""
    executor.claim()
    executor.step(progress=0.5, message="half", data={"rows": 7})
    executor.step(status="SUCCESS", result=[1])
    watched = asyncpoll("watch", submitted, "--json")
    *milestones, last = map(json.loads, watched.stdout.splitlines())
    assert [(one["version"], one["kind"]) for one in milestones] == [
        (1, "enqueued"),
        (2, "started"),
        (3, "progress"),
        (4, "succeeded"),
    ]
    assert (milestones[2]["message"], milestones[2]["data"]) == ("half", {"rows": 7})
    assert (last["status"], last["result"], watched.stderr) == ("SUCCESS", [1], "")
    assert without_times(asyncpoll("watch", f"{submitted}:2").stdout) == [
        "progress 50 % half",
        "succeeded 100 %",
        "[",
        "  1",
        "]",
    ]


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (
            {"status": "FAILED", "error": {"type": "Torn", "message": "page 2"}},
            "FAILED: Torn: page 2",
        ),
        ({"status": "CANCELLED"}, "CANCELLED."),
    ],
)
def test_a_task_without_a_result_is_exit_code_1(asyncpoll, submitted, executor, end, said):
    """With the reason on stderr, and nothing on stdout."""
    executor.claim()
    executor.step(**end)
    waited = asyncpoll("wait", submitted, "--quiet")
    assert (waited.returncode, waited.stdout) == (1, "")
    assert waited.stderr == f"Task {submitted} is {said}\n"


def test_giving_up_is_exit_code_2_and_says_how_to_go_on(asyncpoll, submitted, executor):
    """The task goes on, and its end can be waited for again."""
    gave_up = asyncpoll("wait", submitted, "--lifetime", "0.6", "--quiet")
    assert (gave_up.returncode, gave_up.stdout) == (2, "")
    assert gave_up.stderr == (
        "asyncpoll wait: Gave up after 0.6 s. Your request is still being worked on in the background; please look "
        f"again later. See it again with: asyncpoll wait {submitted}\n"
    )
    assert executor.claim() == submitted
    executor.step(status="SUCCESS", result="late")
    assert asyncpoll("wait", submitted).stdout == '"late"\n'


def test_ctrl_c_leaves_the_task_running_and_says_how_to_resume(begun, submitted, executor):
    """Without a traceback."""
    with begun("watch", submitted) as process:
        assert process.stdout.readline().endswith(" enqueued\n")
        executor.claim()
        assert process.stdout.readline().endswith(" started\n")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    said = f"Stopped waiting; what was submitted goes on. See it again with: asyncpoll watch {submitted}:"
    # Where it was stopped after printing a milestone and before it took note of it, that is told again.
    assert err in (f"{said}2\n", f"{said}1\n")
    assert executor.status(submitted) == "RUNNING"
    executor.step(status="CANCELLED")


def test_a_reader_that_leaves_is_no_error(begun, submitted, executor):
    """As with `asyncpoll watch ID | head -1`."""
    with begun("watch", submitted) as process:
        process.stdout.readline()
        process.stdout.close()
        executor.claim()
        assert process.wait(PATIENCE_SECONDS) == 141
        assert process.stderr.read() == ""
    executor.step(status="CANCELLED")


@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        (
            "> /dev/full",
            2,
            "asyncpoll wait: the output can't be written (No space left on device)\n",
        ),
        (">&-", 0, ""),
        ("2>&-", 0, ""),
    ],
    ids=["full", "stdout closed", "stderr closed"],
)
def test_output_that_goes_nowhere_is_no_traceback(line, executor, redirection, code, said):
    """A full disk is said; what the shell has closed was not wanted."""
    task_id = executor.submit()
    executor.claim()
    executor.step(status="SUCCESS", result=7)
    start = line("wait", task_id, "--quiet")
    start["args"] = ["bash", "-c", f'"$0" "$@" {redirection}', *start["args"]]
    done = subprocess.run(**start, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (code, said)


def test_how_a_task_ends_does_not_depend_on_what_stderr_takes(line, executor):
    """Exit code 1 would say that it failed."""
    task_id = executor.submit()
    executor.claim()
    executor.step(status="SUCCESS", result=7)
    start = line("wait", task_id)
    start["args"] = ["bash", "-c", '"$0" "$@" 2> /dev/full', *start["args"]]
    done = subprocess.run(**start, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stdout) == (0, "7\n")


def test_several_are_waited_for_together(begun, executor):
    """Each result is a line with its task, as it comes; one that failed decides the exit code."""
    first, second = executor.submit(), executor.submit()
    with begun("wait", first, second) as process:
        assert executor.claim() == first
        executor.step(status="SUCCESS", result={"n": 1})
        assert process.stdout.readline() == f'{first} {{"n": 1}}\n'
        assert executor.claim() == second
        executor.step(status="FAILED", error="torn", retryable=False)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert without_times(err)[:2] == ["0 of 2 tasks are over", "1 of 2 tasks are over"]
    assert f"Task {second} is FAILED" in err


def test_a_pending_task_is_cancelled_at_once_and_a_running_one_asked(
    asyncpoll, submitted, executor
):
    """And it says which."""
    running = submitted
    executor.claim()
    pending = asyncpoll("submit", TASK, "--run-at", "2030-01-01T00:00Z").stdout.strip()
    cancelled = asyncpoll("cancel", running, pending)
    assert cancelled.stdout.splitlines() == [
        f"{running} RUNNING, asked to stop",
        f"{pending} CANCELLED",
    ]
    assert cancelled.returncode == 0
    executor.step(status="CANCELLED")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("submit", "nothing.such"), "422, There is no task 'nothing.such' that can be submitted"),
        (("wait", NO_TASK), "404, There is no task 01a22cd1"),
        (("cancel", "abc"), "400, task_id is 'abc'; it must be a task's id"),
    ],
)
def test_what_the_server_refuses_is_one_line_and_exit_code_3(asyncpoll, arguments, said):
    """With the server's own remedy."""
    refused = asyncpoll(*arguments)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (3, "", 1)
    assert said in refused.stderr


def test_a_token_comes_from_the_environment_or_a_file(asyncpoll, tmp_path):
    """A wrong one is refused where none would do, and not repeated."""
    (tmp_path / "token").write_text("ap_wrong_token\n")
    for given in (
        asyncpoll("cancel", NO_TASK, ASYNCPOLL_TOKEN="ap_wrong_token"),
        asyncpoll("cancel", NO_TASK, "--token-file", str(tmp_path / "token")),
    ):
        assert given.returncode == 3
        assert " 401, " in given.stderr
        assert "wrong" not in given.stderr


def test_a_submission_with_a_key_is_one_task_and_arguments_come_from_stdin(asyncpoll, executor):
    """However often the command is given."""
    command = ("submit", TASK, "--kwargs", "-", "--idempotency-key", "nightly 2026-11-30")
    ids = {asyncpoll(*command, stdin='{"n": 1}').stdout for _ in range(2)}
    assert len(ids) == 1
    assert f"{executor.claim()}\n" in ids
    assert executor.claimed["kwargs"] == {"n": 1}
    executor.step(status="SUCCESS", result=None)


def test_an_end_that_was_asked_for_is_in_the_inbox_until_it_is_acknowledged(asyncpoll, executor):
    """Asked for when submitting, and when giving up; only then is it promised."""
    first = asyncpoll("submit", TASK, "--notify", "inbox").stdout.strip()
    gave_up = asyncpoll(
        "wait", second := executor.submit(), "--lifetime", "0.6", "--notify", "inbox"
    )
    assert gave_up.returncode == 2
    assert "the result will be in your message centre" in gave_up.stderr
    for task_id in (first, second):
        assert executor.claim() == task_id
        executor.step(status="SUCCESS", result=1)
    assert asyncpoll("inbox", "--wait", "60").returncode == 0
    eventually(lambda: asyncpoll("inbox").stdout.count("\n") == 2)
    listed = [line.split() for line in asyncpoll("inbox").stdout.splitlines()]
    assert {task_id: status for _, task_id, status in listed} == {
        first: "SUCCESS",
        second: "SUCCESS",
    }
    assert asyncpoll("inbox", "--ack", listed[0][0]).returncode == 0
    left = json.loads(asyncpoll("inbox", "--json", "--ack-all").stdout)
    assert (left["task_id"], left["result"]) == (listed[1][1], 1)


class Terminal:
    """Runs a command whose stderr is a terminal, and reads what it shows."""

    def __init__(self, start: dict[str, Any]) -> None:
        ours, theirs = pty.openpty()
        self.process = subprocess.Popen(**start, stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        self._shown = bytearray()
        self._reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self._reader.start()

    def shows(self, words: str) -> None:
        """Wait until it does."""
        eventually(lambda: words in self.shown)

    @property
    def shown(self) -> str:
        """What it has shown so far, without colours and movements."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._shown.decode())

    def ended(self) -> tuple[int, str]:
        """The exit code and stdout, once it has ended."""
        out, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        return self.process.returncode, out

    def _read(self, ours: int) -> None:
        while True:
            try:
                data = os.read(ours, 65_536)
            except OSError:  # what Linux says instead of an end of file
                data = b""
            if not data:
                os.close(ours)
                return
            self._shown += data


def test_a_terminal_gets_a_live_bar(line, submitted, executor):
    """Which moves with the task, and shows what it says, whatever that is."""
    start = line("wait", submitted, TERM="xterm", COLUMNS="100")
    start["args"] = [sys.executable, "-m", "asyncpoll", *start["args"][1:]]
    terminal = Terminal(start)
    terminal.shows("PENDING")
    executor.claim()
    executor.step(progress=0.42, message="[red]two\x1b[2J pages")
    terminal.shows("RUNNING 42 %")
    assert "━" in terminal.shown
    terminal.shows("[red]two�[2J pages")
    executor.step(status="SUCCESS", result="pages")
    assert terminal.ended() == (0, '"pages"\n')
    assert terminal.shown.rstrip().splitlines()[-1].startswith("SUCCESS ━━━")


@pytest.mark.parametrize("kind", ["dumb", "without rich"])
def test_a_terminal_that_can_do_no_more_gets_lines(line, submitted, executor, kind):
    """As does one where rich is not installed."""
    start = line("wait", submitted, TERM="dumb" if kind == "dumb" else "xterm")
    if kind == "dumb":
        start["args"] = [sys.executable, "-m", "asyncpoll", *start["args"][1:]]
    terminal = Terminal(start)
    terminal.shows("PENDING")
    executor.claim()
    # Two changes before the next answer are told as one.
    terminal.shows("RUNNING")
    executor.step(status="SUCCESS", result=1)
    assert terminal.ended() == (0, "1\n")
    assert without_times(terminal.shown) == ["PENDING", "RUNNING", "SUCCESS"]

"""`asyncpoll` at the prompt: command lines, before anything is sent."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from asyncpoll.cli import words
from asyncpoll.cli.arguments import keyword_arguments
from asyncpoll.cli.errors import UsageError
from asyncpoll.cli.exits import Exit
from asyncpoll.cli.main import exit_of, main, parser
from asyncpoll.client import (
    Answer,
    Busy,
    InboxEntry,
    Misused,
    PollLifetimeExceeded,
    Refused,
    TaskGone,
    TaskNotFound,
    Unreachable,
    set_testing,
)
from asyncpoll.client.testing import Act, ScriptedServer, problem
from asyncpoll.contract import Status
from tests.support import free_port

TASK = "01a22cd1-5617-761b-bc92-fb57ee6aca68"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """No server is named around here."""
    monkeypatch.delenv("ASYNCPOLL_URL", raising=False)
    monkeypatch.delenv("ASYNCPOLL_TOKEN", raising=False)


@pytest.mark.parametrize(
    ("document", "given", "arguments"),
    [
        (None, [], {}),
        (None, ["limit=3", "name=Ada", "when=2026-01-31"], {"limit": 3, "name": "Ada", "when": "2026-01-31"}),
        (None, ['number="3"', "list=[1, 2]", "none=null", "empty="], {"number": "3", "list": [1, 2], "none": None, "empty": ""}),
        (None, ["sum=a=b", "odd=NaN"], {"sum": "a=b", "odd": "NaN"}),
        ('{"limit": 3}', ["name=Ada"], {"limit": 3, "name": "Ada"}),
        ("-", ["name=Ada"], {"limit": 4, "name": "Ada"}),
    ],
)  # fmt: skip
def test_arguments_come_from_words_json_and_stdin(monkeypatch, document, given, arguments):
    """A word that is JSON means what it says."""
    monkeypatch.setattr("sys.stdin", io.StringIO('{"limit": 4}\n'))
    assert keyword_arguments(document, given) == arguments


@pytest.mark.parametrize(
    ("document", "given", "said"),
    [
        (None, ["limit"], "'limit' is no argument; write name=value, such as limit=3."),
        (None, ["=3"], "'=3' is no argument; write name=value, such as limit=3."),
        (None, ["a=1", "a=2"], "a is given twice; give each argument once."),
        ('{"a": 1}', ["a=2"], "a is given twice; give each argument once."),
        ("[1]", [], """--kwargs is '[1]'; it must be a JSON object such as {"limit": 3}."""),
        ('{"a": NaN}', [], """--kwargs is not JSON (NaN is not JSON); give an object such as"""),
        ("[" * 100_000, [], "--kwargs is not JSON (it is nested too deeply)"),
    ],
)
def test_wrong_arguments_are_one_sentence_with_the_remedy(document, given, said):
    """Nothing was sent."""
    with pytest.raises(UsageError) as refused:
        keyword_arguments(document, given)
    assert str(refused.value).startswith(said)


def test_a_closed_stdin_gives_no_arguments(monkeypatch):
    """As where a shell was told `<&-`."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match="stdin is closed; give --kwargs a JSON object"):
        keyword_arguments("-", [])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "asyncpoll: the following arguments are required: COMMAND; see asyncpoll --help"),
        (["wait"], "asyncpoll wait: the following arguments are required: ID; see asyncpoll wait --help"),
        (["wait", TASK], "asyncpoll wait: No server is named; give --url, such as --url http://127.0.0.1:8000, or set ASYNCPOLL_URL."),
        (["wait", TASK, "--url", "ftp://here"], "asyncpoll wait: base_url is 'ftp://here'; give http://HOST or https://HOST"),
        (["wait", TASK, "--lifetime", "0"], "asyncpoll wait: argument --lifetime: '0' is not a number of seconds above 0"),
        (["wait", TASK, "--url", "http://x", "--token-file", "nowhere"], "asyncpoll wait: The token file nowhere can't be read (No such file or directory)"),
        (["wait", TASK, "--url", "http://x", "--token-file", "/dev/null"], "asyncpoll wait: The token file /dev/null is empty; put the token into it."),
        (["wait", f"{TASK}:last", "--url", "http://x"], "asyncpoll wait: cursor is"),
        (["submit", "a", "b", "--url", "http://x"], "asyncpoll submit: 'b' is no argument"),
        (["submit", "a", "--notify", "http://x", "--url", "http://x"], "asyncpoll submit: notify is 'http://x'; give True or 'inbox' for the inbox"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_line_and_exit_code_3(capsys, line, said):
    """Also where argparse would say 2, which is taken."""
    try:
        code = main(line)
    except SystemExit as ended:
        code = ended.code
    error = capsys.readouterr().err
    assert (code, error.count("\n")) == (3, 1)
    assert error.startswith(said)


def test_a_token_on_a_command_line_is_refused_and_not_repeated(capsys):
    """By its name and not as what it might be short for."""
    with pytest.raises(SystemExit) as ended:
        main(["wait", TASK, "--token", "ap_1_2"])
    assert ended.value.code == 3
    assert capsys.readouterr().err == (
        "asyncpoll wait: argument --token: everybody on this machine can read command lines; "
        "set ASYNCPOLL_TOKEN, or give --token-file FILE; see asyncpoll wait --help\n"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError(""), Exit.USAGE),
        (Misused(""), Exit.USAGE),
        (Refused("", 403), Exit.USAGE),
        (TaskNotFound("", 404), Exit.USAGE),
        (TaskGone("", 410), Exit.FAILED),
        (Unreachable(""), Exit.GAVE_UP),
        (Busy(""), Exit.GAVE_UP),
        (PollLifetimeExceeded(TASK, None, reason="after 1 s"), Exit.GAVE_UP),
    ],
)
def test_the_exit_code_says_whose_turn_it_is(error, code):
    """3: the command is wrong; 2: try later; 1: there will never be a result."""
    assert exit_of(error) is code


def test_what_a_task_says_never_steers_the_terminal():
    """Nor does its result."""
    message = "\x1b[2Jall \x9bgone\r\n[red]"
    answer = Answer(TASK, Status.RUNNING, 2, 0.429, message)
    assert words.state(answer) == "RUNNING 42 % �[2Jall �gone��[red]"
    assert words.document({"größe": "\x1b\x9b\u202e"}) == '{"größe": "\\u001b\\u009b\\u202e"}'


class Centre:
    """A client whose inbox is empty at first."""

    def __init__(self, *later: InboxEntry) -> None:
        self.answers = [(), later]
        self.acknowledged: list[str] = []

    def __enter__(self) -> Centre:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def inbox(self, hold_seconds: float) -> tuple[InboxEntry, ...]:
        """What is there by now."""
        return self.answers.pop(0) if self.answers[1:] else self.answers[0]

    def acknowledge(self, entry: InboxEntry | str) -> None:
        """Note it."""
        self.acknowledged.append(entry if isinstance(entry, str) else entry.id)


@pytest.fixture
def centre(monkeypatch):
    """An inbox into which two ends come after the first look, and no pause between looks."""
    entries = [InboxEntry(f"e{n}", TASK, Status.SUCCESS, raw={"id": f"e{n}"}) for n in (1, 2)]
    found = Centre(*entries)
    monkeypatch.setattr("asyncpoll.cli.server.client", lambda options: found)
    monkeypatch.setattr("asyncpoll.cli.inbox._PAUSE_SECONDS", 0)
    return found


@pytest.mark.parametrize(
    ("line", "out", "acknowledged", "code"),
    [
        ([], "", [], 0),
        (["--wait", "60"], f"e1 {TASK} SUCCESS\ne2 {TASK} SUCCESS\n", [], 0),
        (["--wait", "60", "--json", "--ack-all"], '{"id": "e1"}\n{"id": "e2"}\n', ["e1", "e2"], 0),
        (["--ack", "e2", "e7"], "", ["e2", "e7"], 0),
    ],
)
def test_the_inbox_is_listed_waited_for_and_acknowledged(
    capsys, centre, line, out, acknowledged, code
):
    """A line for each end."""
    assert main(["inbox", *line]) == code
    assert (capsys.readouterr().out, centre.acknowledged) == (out, acknowledged)


def test_an_inbox_into_which_nothing_came_is_given_up(capsys, centre):
    """Which is no error of the command's."""
    centre.answers = [()]
    assert main(["inbox", "--wait", "0.01"]) == Exit.GAVE_UP
    assert capsys.readouterr().out == ""


DOCUMENTATION = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()


def test_every_documented_command_line_can_be_given():
    """And every command and exit code is documented."""
    lines = re.findall(r"asyncpoll ((?:submit|wait|watch|cancel|inbox) [^`>|)\n]+)", DOCUMENTATION)
    for line in re.findall(r"^    .*\$ .*", DOCUMENTATION, re.MULTILINE):
        if "asyncpoll " in line:
            assert any(known in line for known in lines)
    for line in lines:
        if "TASK" not in line and " …" not in line:
            parser().parse_args(shlex.split(line))
    assert {line.split()[0] for line in lines} == {"submit", "wait", "watch", "cancel", "inbox"}
    codes = re.findall(r"^\| ([\d, ]+) \|", DOCUMENTATION, re.MULTILINE)
    assert [int(code) for code in ",".join(codes).split(",")] == list(Exit)


def test_of_a_task_that_was_never_seen_nothing_is_promised(capsys, monkeypatch):
    """Each try says what was wrong with it, and the end how to go on."""
    monkeypatch.setenv("ASYNCPOLL_URL", f"http://127.0.0.1:{free_port()}")
    with set_testing():
        code = main(["wait", TASK, "--lifetime", "5"])
    said = capsys.readouterr().err
    assert code == Exit.GAVE_UP
    first = "No answer to try 1: ConnectError: [Errno 111] Connection refused; trying again in"
    assert re.match(re.escape(first) + r" [12]\.\d s\n", said)
    assert said.endswith(
        "asyncpoll wait: Gave up after 5 s. No answer has come; look whether the server is well, and whether --url or "
        f"ASYNCPOLL_URL names it. See it again with: asyncpoll wait {TASK}\n"
    )


def test_a_submission_to_nobody_says_that_it_tries_again_and_gives_up_in_time(capsys):
    """And how to repeat it without a second task."""
    with set_testing():
        code = main(["submit", "t", "--lifetime", "5", "--url", f"http://127.0.0.1:{free_port()}"])
    *tries, last = capsys.readouterr().err.splitlines()
    assert code == Exit.GAVE_UP
    assert tries and "trying again in" in tries[0]
    assert "did not succeed after 5 s: ConnectError" in last
    assert "submit it again with the idempotency key" in last


@pytest.mark.parametrize("line", ["submit t --notify inbox", "submit t --notify inbox --wait"])
def test_a_notification_that_is_refused_is_a_submission_that_is_refused(capsys, line):
    """One request, nothing stored, exit code 3."""
    refused = problem(403, "/problems/forbidden", detail="These credentials lack notify.")
    with ScriptedServer([refused]) as server:
        assert main([*line.split(), "--url", server.url]) == Exit.USAGE
    shown = capsys.readouterr()
    assert (shown.out, len(server.requests)) == ("", 1)
    assert "403, These credentials lack notify." in shown.err


def test_what_is_no_number_is_null_in_json(capsys):
    """Programs read it, and JSON knows no NaN; an answer of somebody else's may have it all the same."""
    body = b'{"task_id": "t", "status": "SUCCESS", "version": 2, "result": [NaN, -Infinity, 1e999, 1.5]}'
    with ScriptedServer([Act(body=body)]) as server:
        for more in ([], ["--json"]):
            assert main(["wait", "t", "--quiet", "--url", server.url, *more]) == Exit.DONE
    shown, one_line = capsys.readouterr().out.rsplit("\n{", 1)
    for said in (
        json.loads(shown),
        json.loads("{" + one_line, parse_constant=pytest.fail)["result"],
    ):
        assert said == [None, None, None, 1.5]


def test_without_httpx_it_says_what_to_install():
    """As after installing only what the server needs."""
    without = "import runpy, sys; sys.modules['httpx'] = None; runpy.run_module('asyncpoll', run_name='__main__')"
    ended = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True)
    assert ended.returncode == Exit.USAGE
    assert ended.stderr == "asyncpoll: httpx is missing; pip install . in the checkout brings it.\n"


@pytest.mark.parametrize("line", ["submit t", "cancel t", "inbox", "wait t", "wait t u"])
@pytest.mark.parametrize("status", [200, 404])
def test_no_answer_steers_the_terminal(capsys, line, status):
    """Ids and the words of an error come from the server as well."""
    evil = "\x1b[2Jx"
    said = {"task_id": evil, "id": evil, "status": status if status == 404 else "FAILED"}
    said |= {"version": 1, "error": {"type": evil}, "type": evil, "title": evil, "detail": evil}
    said |= {"entries": [dict(said)], "problems": [{**said, "status": 404, "task": "t:0"}]}
    with set_testing(), ScriptedServer([Act(status, said)]) as server:
        main(
            [*line.split(), "--url", server.url, *(["--lifetime", "0.5"] if "wait" in line else [])]
        )
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err and shown.out + shown.err


def test_an_inbox_that_never_answers_is_no_output_that_cant_be_written(capsys, monkeypatch):
    """A wait that took too long is an OSError too, being a TimeoutError."""
    monkeypatch.setattr("asyncpoll.cli.inbox._entries", _too_late)
    assert main(["inbox", "--wait", "1", "--url", "http://127.0.0.1:9"]) == Exit.GAVE_UP
    assert "Gave up waiting for inbox" in capsys.readouterr().err


def _too_late(client, patience):
    raise PollLifetimeExceeded("inbox", None, reason="after 1 s", attempt_count=2)

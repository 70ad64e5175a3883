"""One event, one line, whatever its facts hold; and no secret in it."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.core.signing import Signer
from django.test import RequestFactory

from tasks_app import events
from tasks_app.api.tickets import poll_ticket
from tasks_app.errors import Unmigrated
from tasks_app.events import emit
from tasks_app.observers import logs
from tasks_app.observers.lines import JsonLines, formatter
from tasks_app.observers.repeats import Repeats
from tasks_app.redaction import without_secrets
from tasks_app.tokens import issue

CODE = Path(__file__).resolve().parents[2] / "tasks_app"
BREAKS = "\n\r\x0b\x0c\x1b[2K\x85\u2028\u2029\ud800\x00"
EVIL = f"first{BREAKS}2026-01-01 ERROR forged: second"
Written = Callable[[], str]


@pytest.fixture(params=["json", "line"])
def written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """What a handler with the project's own formatter has written, from DEBUG on."""
    monkeypatch.setattr(logs, "_repeats", Repeats())
    # Other observers, if an earlier test has installed any, want other facts.
    monkeypatch.setattr(events, "_listeners", [])
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(request.param))
    loggers = [logging.getLogger(name) for name in ("tasks_app", "django.request")]
    for each in loggers:
        each.addHandler(handler)
        monkeypatch.setattr(each, "level", logging.DEBUG)
        each.manager._clear_cache()  # type: ignore[attr-defined]
    end = logs.install()
    yield stream.getvalue
    end()
    for each in loggers:
        each.removeHandler(handler)
        each.manager._clear_cache()  # type: ignore[attr-defined]


def facts_of(event: str, text: str) -> dict[str, object]:
    """Facts for the line of an event, with `text` in every one that may be a text."""
    _, line = logs.LINES[event]
    return {
        name: [text] if words == " names" else 1.0 if kind == "f" or words else text
        for name, words, kind in re.findall(r"%\((\w+)( [\w ]+)?\)(?:\.\d)?(\w)", line)
    }


@pytest.mark.parametrize("event", sorted(logs.LINES))
def test_no_value_breaks_a_line(written: Written, event: str) -> None:
    """Names, owners, errors and payloads are other people's."""
    emit(event, **facts_of(event, EVIL))
    assert len(written().splitlines()) == 1
    assert "\x1b" not in written()


def test_no_error_breaks_the_line_of_an_attempt(written: Written) -> None:
    """Nor the one of a task that is over, nor that of an event without words of its own."""
    finished = {
        "id": UUID(int=1),
        "name": EVIL,
        "attempt": 1,
        "status": "FAILED",
        "error_type": EVIL,
        "error_message": EVIL,
        "retry_in_seconds": 0.0,
        "duration_ms": 1.0,
    }
    emit("task.finished", **finished)
    emit("order.task_done", order=1, by=EVIL, verb="cancel", id=2, status="PENDING", new_id=None)
    emit("nobody.knows", error=ValueError(EVIL), seen=[EVIL])
    emit("loop.failed", loop="upkeep", error=ValueError(EVIL), failures=1, pause=1.0)
    emit("loop.failed", loop="pruning", error=Unmigrated(EVIL), failures=1, pause=1.0)
    assert len(written().splitlines()) == 5


def test_a_fault_in_a_request_has_its_traceback_and_no_other_line(written: Written) -> None:
    """What is indented is no event, in JSON there is nothing indented. The path is the client's."""
    try:
        raise ValueError(EVIL.replace("\ud800", ""))  # which no report of a parallel run could hold
    except ValueError as error:
        emit("request.failed", request=RequestFactory().get("/a%0A2026 b?ticket=x"), error=error)
    lines = written().splitlines()
    assert [line for line in lines[1:] if not line.startswith("    ")] == []
    assert "/a\\n2026 b" in lines[0] and "forged" in lines[-1]


def test_json_has_the_event_and_its_facts_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """For programs: numbers are numbers, ids are texts."""
    record = logging.LogRecord("tasks_app", logging.INFO, "", 0, "Due: %s", ("3 tasks",), None)
    record.event = "task.promoted"
    record.facts = {
        "count": 3,
        "id": UUID(int=1),
        "late": float("inf"),
        "names": ("a",),
        "no": None,
    }
    said = json.loads(formatter("json").format(record))
    assert (said["event"], said["level"], said["logger"]) == ("task.promoted", "INFO", "tasks_app")
    assert said["message"] == "Due: 3 tasks"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said["at"])
    assert said["facts"] == {
        "count": 3,
        "id": str(UUID(int=1)),
        "late": "inf",
        "names": ["a"],
        "no": None,
    }


def test_a_record_has_the_event_and_its_facts(caplog: pytest.LogCaptureFixture) -> None:
    """For a project with a formatter of its own."""
    end = logs.install()
    with caplog.at_level(logging.DEBUG, "tasks_app"):
        emit("task.promoted", count=3)
    end()
    [record] = caplog.records
    assert (record.event, record.facts) == ("task.promoted", {"count": 3})  # type: ignore[attr-defined]


def test_the_format_is_for_who_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal lines, elsewhere JSON; or as one says."""
    kinds = {}
    for at_terminal in (True, False):
        monkeypatch.setattr("sys.stderr.isatty", lambda at=at_terminal: at, raising=False)
        kinds[at_terminal] = type(formatter()).__name__
    assert kinds == {True: "PlainLines", False: "JsonLines"}
    with pytest.raises(ValueError, match="The format of log lines is 'xml'; it must be 'json'"):
        formatter("xml")


def secrets() -> dict[str, tuple[str, str]]:
    """Texts with a secret in them, and the secret."""
    token = issue("alice", ["read"], None, "").text
    ticket = poll_ticket(UUID(int=7), "alice")
    lease = Signer(salt="asyncpoll.lease").sign(f"1.{UUID(int=3).hex}")
    hook = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
    return {
        "token": (f"refused {token!r}", token.split("_")[2]),
        "bearer": (f"Authorization: Bearer {token[:-9]}", token.split("_")[2][:-9]),
        "other bearer": ("Bearer eyJhbGciOi.J9.abc-def_ghi sent", "eyJhbGciOi.J9.abc-def_ghi"),
        "ticket in a URL": (f"GET /x?a=1&ticket={ticket} HTTP", ticket.split(":")[-1]),
        "ticket": (f"wrong ticket {ticket}", ticket.split(":")[-1]),
        "lease token": (f"lease_token={lease}", lease.split(":")[-1]),
        "lease token alone": (f"no such lease {lease}.", lease.split(":")[-1]),
        "webhook secret": (f"signed with {hook}", hook.removeprefix("whsec_")),
        "URL": ("can't reach postgresql://me:hun/t@r2@db/x", "hun/t@r2"),
        "rediss URL": ("redis://:s3cr3t@cache:6379", "s3cr3t"),
        "conninfo": ("host=db password='a b\\'' dbname=x", "a b"),
        "conninfo, bare": ("host=db password=abc,dbname=x", "abc"),
        "JSON": ('{"secret": "abc def"}', "abc def"),
    }


@pytest.mark.parametrize("kind", sorted(secrets()))
def test_no_secret_reaches_a_line(written: Written, kind: str) -> None:
    """Whatever fact it hides in."""
    text, secret = secrets()[kind]
    assert secret in text
    for event in logs.LINES:
        emit(event, **facts_of(event, text))
    finished = {"id": 1, "name": "a", "attempt": 1, "status": "FAILED", "error_type": "ValueError"}
    emit("task.finished", **finished, error_message=text, retry_in_seconds=0, duration_ms=1.0)
    emit("nobody.knows", error=ValueError(text), listed=[{"of": text}])
    try:
        raise ValueError(text)
    except ValueError as error:
        emit("request.failed", request=RequestFactory().get("/"), error=error)
    assert secret not in written()
    assert written().count("[hidden]") > len(logs.LINES) / 2


def test_what_a_formatter_of_the_projects_own_gets_is_one_line_without_secrets(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows nothing of ours."""
    monkeypatch.setattr(logs, "_repeats", Repeats())
    monkeypatch.setattr(events, "_listeners", [])
    caplog.set_level(logging.DEBUG, "tasks_app")
    logs.install()
    token = issue("alice", ["read"], None, "").text
    for event in logs.LINES:
        emit(event, **facts_of(event, f"{EVIL} {token}"))
    emit("nobody.knows", error=ValueError(f"{EVIL} {token}"), seen=[EVIL])
    assert len(caplog.messages) > len(logs.LINES)
    broken = [text for text in caplog.messages if len(text.splitlines()) != 1 or "\x1b" in text]
    assert not broken
    assert token.split("_")[2] not in "".join(caplog.messages)


@pytest.mark.parametrize("kind", ["json", "line"])
def test_lines_of_others_are_one_line_without_secrets_too(kind: str) -> None:
    """Where they go through our formatter."""
    token = issue("alice", ["read"], None, "").text
    said = ("Bad: %s", (f"Bearer {token}\nforged",), None, "views", f"Stack:\n  {token}")
    record = logging.LogRecord("elsewhere", logging.INFO, "", 0, *said)
    first, *rest = formatter(kind).format(record).splitlines()
    assert "\\nforged" in first
    assert all(line.startswith("    ") for line in rest)
    assert token.split("_")[2] not in first + "".join(rest)


@pytest.mark.parametrize(
    "text",
    [
        "The use of 3 tokens could not be noted; a bearer of bad news",
        "https://example.org/a:b@c and at 12:30:00, id 0199-aa",
        f"Task {UUID(int=1)} of process 12: https://example.org:8443/x",
        "This lease token was not given out for this task; its password was wrong",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """A line is there to be read."""
    assert without_secrets(text) == text


def test_prose_is_in_the_observers_alone() -> None:
    """Everybody else emits. But for who says that an observer failed, and for commands, whose output is their answer."""
    speaks = {
        path.relative_to(CODE).as_posix()
        for path in CODE.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and _says_something(call)
    }
    elsewhere = {path for path in speaks if path.split("/")[0] not in ("observers", "management")}
    assert elsewhere == {"events.py"}
    assert "observers/logs.py" in speaks


def _says_something(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id="print"):
            return True
        case ast.Attribute(value=ast.Name(id=who), attr=how):
            levels = {"debug", "info", "warning", "error", "exception", "critical", "log"}
            is_logger = who.strip("_").lower() in ("log", "logger", "logging", "requests")
            return (is_logger and how in levels) or (who == "warnings" and how == "warn")
    return False


def test_lines_are_for_programs_where_there_is_no_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under a service manager that closes it."""
    monkeypatch.setattr("sys.stderr", None)
    assert isinstance(formatter(), JsonLines)


@pytest.mark.parametrize("kind", ["json", "line"])
def test_the_end_of_a_task_is_its_own_json_in_either_format(kind: str) -> None:
    """Whoever puts the formatter on the root logger can give the log to the planner."""
    text = '{"event": "ASYNC_TASK_DONE", "task": "a"}'
    record = logging.LogRecord("tasks_app.done", logging.INFO, "", 0, text, (), None)
    assert formatter(kind).format(record) == text


def test_what_a_library_warns_of_is_a_line_where_no_logging_was_set_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python writes it as it is otherwise, with its line ends."""
    handler = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging, "lastResort", handler)
    logs.ensure_shown()
    handler.handle(logging.LogRecord("psycopg.pool", logging.WARNING, "", 0, EVIL, (), None))
    assert len(handler.stream.getvalue().splitlines()) == 1

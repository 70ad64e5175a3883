"""Nothing secret is in logs or error reports: neither tokens nor tickets nor what they are made of."""

from __future__ import annotations

import logging
import traceback

import pytest
from django.views.debug import ExceptionReporter

from tasks_app.api import holds
from tasks_app.api.identity import poll_ticket
from tasks_app.observers import logs
from tasks_app.redaction import without_ticket
from tasks_app.store import make_token
from tasks_app.tokens import issue
from tests import sample_tasks
from tests.external_tasks import anything
from tests.integration.api_support import API, is_problem, stored
from tests.integration.executors_support import executing
from tests.workers import run_one, working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nobody_without_credentials(settings):
    """Nothing else lets anybody in."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}


def logged(caplog):
    """Every line, but for those of the client that the test sends with."""
    return [record.getMessage() for record in caplog.records if record.name != "httpx"]


def reported(record):
    """Everything that a handler could print or mail of a record: with the frames' variables, as HTML and as text."""
    reporter = ExceptionReporter(record.request, *record.exc_info, is_email=True)
    return "\n".join(
        [
            record.getMessage(),
            "".join(traceback.format_exception(*record.exc_info)),
            reporter.get_traceback_html(),
            reporter.get_traceback_text(),
            repr(record.request),
            repr(record.request.META),
            repr(record.request.scope.get("query_string")),
        ]
    )


@pytest.mark.parametrize("fault", ["in the view", "in the check"])
async def test_a_fault_is_reported_without_the_token_of_whoever_met_it(
    client, service, caplog, monkeypatch, fault
):
    """The request is in the report, and the frames of the traceback."""
    issued = issue("alice", ["read"], None, "")
    await service.pool.run(make_token(issued.new))
    task_id = await stored(service, owner="alice")

    async def broken(*_):
        raise ValueError("broken")

    if fault == "in the view":
        monkeypatch.setattr(holds, "wait", broken)
    else:
        monkeypatch.setattr(service.tokens, "find", broken)
    headers = {"Authorization": f"Bearer {issued.text}"}
    with caplog.at_level(logging.DEBUG):
        answer = await client.get(f"{API}/tasks/{task_id}/long_poll", headers=headers)
    is_problem(answer, 500, "internal-error")
    [record] = [record for record in caplog.records if record.name == "django.request"]
    text = reported(record) + "".join(logged(caplog))
    assert "broken" in text and str(task_id) in text
    assert issued.text not in text and issued.text.split("_")[2] not in text


@pytest.mark.parametrize("name", ["ticket", "%74icket", "t%69cket"])
async def test_a_fault_is_reported_without_the_ticket(client, service, caplog, monkeypatch, name):
    """However its name is written; the rest of the query stays."""
    task_id = await stored(service, owner="alice")
    ticket = poll_ticket(task_id)

    async def broken(*_):
        raise ValueError("broken")

    monkeypatch.setattr(holds, "wait", broken)
    with caplog.at_level(logging.DEBUG):
        answer = await client.get(
            f"{API}/tasks/{task_id}/long_poll?client_known_version=7&{name}={ticket}"
        )
    is_problem(answer, 500, "internal-error")
    [record] = [record for record in caplog.records if record.name == "django.request"]
    text = reported(record) + "".join(logged(caplog))
    assert "client_known_version=7" in text
    assert ticket not in text and ticket.split(":")[-1] not in text


@pytest.mark.parametrize(
    ("args", "kwargs", "secrets"),
    [
        (["ann", "hun'ter2"], {}, ["hun'ter2", "hun\\'ter2"]),
        (
            ["ann"],
            {"password": ["hunter2", {"n": 90210}], 'o"dd': "xyz"},
            ["hunter2", "90210", "xyz"],
        ),
    ],
)
async def test_a_failing_attempt_is_logged_without_sensitive_arguments(
    service, caplog, args, kwargs, secrets
):
    """However its error quotes them; what the others were stays."""
    caplog.set_level(logging.DEBUG, "tasks_app")
    stop_logging = logs.install()
    async with working():
        task = await run_one(sample_tasks.sign_in, *args, **kwargs)
    stop_logging()
    assert all(secret in task.error_message for secret in secrets[:1])
    [line] = [text for text in caplog.messages if "PermissionError" in text]
    assert "[hidden]" in line and "is not what ann says" in line
    everything = "".join(f"{record.getMessage()}{record.__dict__}" for record in caplog.records)
    assert not [secret for secret in secrets if secret in everything]


async def test_what_an_executor_reports_is_logged_without_sensitive_arguments(
    service, emitted, settings
):
    """It has them from the claim."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": True}
    async with executing() as executor:
        await anything.aenqueue(pin=4711, page=12)
        task = await executor.claim_one()
        await executor.stepped(task, status="FAILED", error="4711 on 12 is wrong")
    [finished] = emitted.of("task.finished")
    assert finished["error_message"] == "[hidden] on 12 is wrong"


@pytest.mark.parametrize(
    ("query", "printed"),
    [
        ("", ""),
        ("a=1&ticket=x:y:z&b=2", "a=1&ticket=[hidden]&b=2"),
        ("ticket=", "ticket=[hidden]"),
        ("ticket=a=b&ticket=c", "ticket=[hidden]&ticket=[hidden]"),
        ("%74%69cket=secret", "%74%69cket=[hidden]"),
        ("tickets=1&xticket=2&ticket", "tickets=1&xticket=2&ticket"),
        ("%ff=1&a", "%ff=1&a"),
    ],
)
def test_a_ticket_is_hidden_and_nothing_else(query, printed):
    """The query stays what it was otherwise."""
    assert without_ticket(query) == printed

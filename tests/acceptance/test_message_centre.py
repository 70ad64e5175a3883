"""The message centre with real processes: what is told survives whoever tells it."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

from standardwebhooks.webhooks import Webhook

from asyncpoll.client import Client
from tests.acceptance.processes import said, server, worker
from tests.acceptance.workers import Queue
from tests.receivers import Authority, receiver
from tests.support import eventually


def test_a_killed_teller_is_succeeded_by_another(queue: Queue, tmp_path: Path) -> None:
    """SIGKILL while a webhook is on its way: it is sent again under the same id, signed; the inbox has one entry.

    An end that comes while nobody is there to tell it is told by who comes next.
    """
    authority = Authority(tmp_path)
    environment = {
        "SSL_CERT_FILE": str(authority.trusted),
        "ASYNCPOLL_WEBHOOK_TEST_HOSTS": "localhost",
        "DJANGO_SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ",
    }
    code, printed = said(
        ["manage.py", "createwebhooksecret", "--owner", ""], queue.url, **environment
    )
    assert code == 0, printed
    secret = next(line for line in printed.splitlines() if line.startswith("whsec_"))
    with receiver(authority.context("localhost")) as hooks, ExitStack() as stack:
        hooks.answers["/"] = lambda handler: hooks.closing.wait(60)
        with server("daphne", queue.url, **environment) as (port, pid):
            client = stack.enter_context(Client(f"http://127.0.0.1:{port}"))
            task = client.submit(
                "sample.add", args=[1, 2], notify=f"https://localhost:{hooks.port}/"
            )
            client.notify(task.task_id, inbox=True)
            assert client.inbox() == ()
            later = client.submit("sample.add", args=[3, 4], notify=True)
            client.cancel(task.task_id)
            eventually(lambda: hooks.received)
            [entry] = client.inbox(hold_seconds=20)
            os.kill(pid, signal.SIGKILL)
        hooks.answers.clear()
        # Nobody is there to tell of this end.
        queue.execute(
            "UPDATE tasks_app_task SET status = 'CANCELLED', ready = false, finished_at = clock_timestamp() "
            f"WHERE id = '{later.task_id}'"
        )
        # What time would do: nobody has recorded an attempt before it must have been over.
        queue.execute(
            "UPDATE tasks_app_delivery SET due_at = clock_timestamp() WHERE state = 'DUE'"
        )
        with worker(queue.url, "--queues", "nobodys", **environment):
            eventually(lambda: states(queue) == {"DELIVERED"})
        first, second = hooks.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    message = Webhook(secret).verify(second.body, dict(second.headers))
    assert (message["type"], message["data"]["task_id"]) == ("task.cancelled", task.task_id)
    told = queue.ask("SELECT task_id::text FROM tasks_app_inboxentry ORDER BY id")
    assert told == [(entry.task_id,), (later.task_id,)]
    assert queue.ask("SELECT number, status FROM tasks_app_deliveryattempt") == [(2, 204)]


def states(queue: Queue) -> set[str]:
    return {state for (state,) in queue.ask("SELECT state FROM tasks_app_delivery")}

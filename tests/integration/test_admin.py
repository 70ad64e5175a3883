"""The admin's pages: what they show, and what they never ask of the database."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from asyncpoll.contract import Status
from tasks_app.admin.history import SHOWN_ROWS
from tasks_app.models import Task, TaskEvent
from tasks_app.models.task import new_task_id
from tasks_app.steps import notify_step_completed
from tasks_app.store import Milestone, stop_worker
from tasks_app.store.driver import run
from tests.external_tasks import QUEUE
from tests.integration.admin_support import (
    LIST,
    WORKER,
    failed,
    page,
    pending,
    running,
    said,
    succeeded,
)

pytestmark = pytest.mark.django_db
SCRIPT = "<script>alert(1)</script>"
TEN_MEGABYTES = 10 * 1024 * 1024


def text_of(client: Client, address: str, **query: str) -> str:
    response = client.get(address, query)
    assert response.status_code == 200, response
    return response.content.decode()


def listed(client: Client, **query: str) -> set[UUID]:
    """The ids on the first page of the list."""
    response = client.get(reverse(LIST), query)
    assert response.status_code == 200, response
    return {task.pk for task in response.context["cl"].result_list}


def put_large_result(task_id: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tasks_app_task SET result = jsonb_build_object('text', repeat('0123456789abcdef', %s)) "
            "WHERE id = %s",
            [TEN_MEGABYTES // 16, task_id],
        )


@pytest.fixture
def viewer() -> Client:
    """A member of staff who may look at tasks and no more."""
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(user)
    return client


def test_the_list_never_counts_and_never_reads_large_columns(admin_client: Client) -> None:
    """Neither plain nor filtered nor searched, whatever the number of rows."""
    for _ in range(60):
        pending()
    for query in ({}, {"status": "PENDING"}, {"type": "sample.add"}, {"q": "acme"}, {"queue": "x"}):
        with CaptureQueriesContext(connection) as captured:
            admin_client.get(reverse(LIST), query)
        statements = [each["sql"] for each in captured if '"tasks_app_task"' in each["sql"]]
        # Where a filtered page stops looking is asked of the index of ids.
        floors = [each for each in statements if "OFFSET 50000" in each]
        statements = [each for each in statements if each not in floors]
        assert len(statements) == 1 and len(floors) == (1 if query else 0)
        assert all(each.startswith('SELECT "tasks_app_task"."id" AS "pk" FROM') for each in floors)
        assert not re.search(r"COUNT\(|DISTINCT|LIKE|OFFSET", statements[0], re.IGNORECASE)
        rest = statements[0].replace('LEFT("tasks_app_task"."error_message", 61)', "")
        assert not re.search(r'"(args|kwargs|result|traceback|error_message)"', rest)


def test_the_list_shows_each_task_with_its_state(admin_client: Client) -> None:
    """Status, progress, message, type, queue, owner and version are on the page."""
    said(running(name="mail.send", queue="mail"), Milestone("progress", 0.25, "1 of 4"))
    html = text_of(admin_client, reverse(LIST))
    for shown in ("RUNNING", "25 %", "1 of 4", "mail.send", ">mail<", "acme", "version 3"):
        assert shown in html


def test_the_list_says_why_a_task_failed_and_when_one_is_due(admin_client: Client) -> None:
    """The beginning of the error's first line; nothing of a time that has come."""
    failed("no route to the host that was asked for, whatever its name may be\nsecond line")
    pending()
    html = text_of(admin_client, reverse(LIST))
    assert ">OSError: no route to the host that was asked for, whatever …<" in html
    assert ">due " not in html
    pending(run_at=datetime(2037, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC))
    assert ">due 2037-01-02 03:04:05 UTC<" in text_of(admin_client, reverse(LIST))


def test_a_row_of_ten_megabytes_leaves_the_list_small(admin_client: Client) -> None:
    """The result is not read for it."""
    task_id = succeeded()
    put_large_result(task_id)
    assert len(text_of(admin_client, reverse(LIST))) < 100_000


def test_older_tasks_are_a_page_further(admin_client: Client) -> None:
    """Pages go by the last id, so that each task is met once, also when new ones arrive in between."""
    ids = [pending() for _ in range(120)]
    seen: list[UUID] = []
    address = reverse(LIST)
    while address:
        changelist = admin_client.get(address).context["cl"]
        seen += [task.pk for task in changelist.result_list]
        pending()
        address = changelist.older_url and reverse(LIST) + changelist.older_url
    assert seen == ids[::-1]


def test_a_page_keeps_its_filter_and_a_new_filter_starts_over(admin_client: Client) -> None:
    """The links of the filters do not carry the page."""
    ids = [pending(owner="a") for _ in range(51)]
    html = text_of(admin_client, reverse(LIST), status="PENDING")
    assert f"?p={ids[1]}&amp;status=PENDING" in html
    html = text_of(admin_client, reverse(LIST), status="PENDING", p=str(ids[1]))
    assert 'href="?status=FAILED"' in html


def test_a_page_that_is_no_id_is_the_first_page(admin_client: Client) -> None:
    """A mangled address leads back to the list."""
    response = admin_client.get(reverse(LIST), {"p": "2"}, follow=True)
    assert response.redirect_chain == [(f"{reverse(LIST)}?e=1", 302)]
    assert response.status_code == 200


def test_filters_keep_what_matches(admin_client: Client) -> None:
    """By status, type and queue, also by values that this process does not know."""
    done, waits = succeeded(), pending(name="renamed.long.ago", queue="slow")
    assert listed(admin_client, status="SUCCESS") == {done}
    assert listed(admin_client, type="renamed.long.ago") == {waits}
    assert listed(admin_client, queue="slow") == {waits}
    assert listed(admin_client, queue="slow", status="SUCCESS") == set()
    assert listed(admin_client, status="BOGUS\x00") == set()


def test_a_filter_that_few_match_looks_at_so_many_a_page(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next page goes on where this one stopped; what an index finds is found at once."""
    monkeypatch.setattr("tasks_app.admin.changelist.SPAN", 3)
    broke = failed(owner="bob")
    old, runs = pending(name="rare", owner="bob"), running().id
    ids = [pending() for _ in range(4)]
    changelist = admin_client.get(reverse(LIST), {"type": "rare"}).context["cl"]
    assert (list(changelist.result_list), changelist.looked_at) == ([], 3)
    html = text_of(admin_client, reverse(LIST), type="rare")
    assert "of the 3 that were looked at" in html and f"p={ids[0]}" in html
    assert listed(admin_client, type="rare", p=str(ids[0])) == {old}
    assert listed(admin_client, q="owner:bob", status="PENDING") == {old}
    assert listed(admin_client, q=str(old)) == listed(admin_client, q=f"id:{old}") == {old}
    assert listed(admin_client, status="RUNNING") == {runs}
    assert listed(admin_client, status="FAILED") == {broke}
    assert listed(admin_client, q="owner:bob", status="FAILED") == {broke}
    assert listed(admin_client, status="FAILED", q=f"id:{broke}") == {broke}
    others = {failed() for _ in range(4)}
    assert listed(admin_client, q="owner:bob", status="FAILED") == {broke}
    assert listed(admin_client, status="FAILED") == others


def test_search_takes_an_exact_id_type_or_owner(admin_client: Client) -> None:
    """Bare, or with the name of the field before it."""
    one, other = pending(owner="acme"), pending(owner="sample.add", queue="mail", name="b:c")
    assert listed(admin_client, q=f" {one} ") == {one}
    assert listed(admin_client, q=one.hex) == {one}
    assert listed(admin_client, q="acme") == listed(admin_client, q="owner:acme") == {one}
    assert listed(admin_client, q="sample.add") == {one, other}
    assert listed(admin_client, q="type: sample.add") == {one}
    assert listed(admin_client, q="queue:mail") == listed(admin_client, q="b:c") == {other}
    for term in ("acm", str(uuid4()), "id:acme", "worker:acme", "%", f"worker:{uuid4()}"):
        assert listed(admin_client, q=term) == set()


def test_no_other_lookup_reaches_the_table(admin_client: Client) -> None:
    """`?result__icontains=` would read every row."""
    for lookup in ("result__icontains", "name__icontains", "owner"):
        assert admin_client.get(reverse(LIST), {lookup: "x"}).status_code == 400


def test_no_other_order_reaches_the_table(admin_client: Client) -> None:
    """Sorting by a column would sort the whole table."""
    changelist = admin_client.get(reverse(LIST), {"o": "1"}).context["cl"]
    assert changelist.queryset.query.order_by == ("-pk",)


def test_a_task_type_that_nobody_declares_is_shown(admin_client: Client) -> None:
    """Renamed and deleted types stay readable, with a note."""
    task_id = pending(name="renamed.long.ago")
    assert "renamed.long.ago" in text_of(admin_client, reverse(LIST))
    assert "renamed.long.ago (not declared in this process)" in text_of(admin_client, page(task_id))


def test_the_page_shows_arguments_result_and_history(admin_client: Client) -> None:
    """JSON is indented; each version has its line, with the time since the one before."""
    claimed = running(kwargs='{"a": [1, {"b": null}], "c": 12345678901234567890.5}')
    said(claimed, Milestone("progress", 0.5, "half", '{"files": 212}'))
    said(claimed, Milestone("succeeded", 1.0), status=Status.SUCCESS, result="[]")
    html = text_of(admin_client, page(claimed.id))
    assert "  &quot;c&quot;: 12345678901234567890.5" in html
    assert "<pre>[]</pre>" in html
    rows = re.findall(r"<td>(\d)</td>\s*<td>([A-Z]\w+)</td>", html)
    assert rows == [("4", "Succeeded"), ("3", "Progress"), ("2", "Started"), ("1", "Enqueued")]
    gaps_and_attempt = re.findall(r"<td class=\"nowrap\">[\d.]+ m?s</td>", html)
    assert len(gaps_and_attempt) == 3 + 1
    assert "half" in html and "{&quot;files&quot;: 212}" in html
    assert str(WORKER.id) in html and "host-1:4711" in html


def test_each_version_has_the_time_since_the_one_before(admin_client: Client) -> None:
    """Not since the first, and not until the next."""
    task_id = succeeded()
    begun = datetime(2030, 1, 1, tzinfo=UTC)
    for version, seconds in ((1, 0), (2, 5), (3, 95)):
        events = TaskEvent.objects.filter(task_id=task_id, version=version)
        assert events.update(at=begun + timedelta(seconds=seconds)) == 1
    html = text_of(admin_client, page(task_id))
    cell = r"<td[^>]*>([^<]*)</td>\s*"
    rows = re.findall(rf"<tr>\s*<td>(\d)</td>\s*{cell}{cell}{cell}", html)
    assert [(version, gap) for version, _, _, gap in rows] == [
        ("3", "1 min 30 s"),
        ("2", "5.0 s"),
        ("1", ""),
    ]


def test_a_failure_shows_error_and_traceback(admin_client: Client) -> None:
    """The operator sees why."""
    html = text_of(admin_client, page(failed("no route to host")))
    assert "<pre>OSError: no route to host</pre>" in html
    assert "Traceback …\nOSError: no route to host" in html


def test_a_result_of_ten_megabytes_is_cut_with_a_note(admin_client: Client) -> None:
    """The database cuts it; the page says how large the whole is."""
    task_id = succeeded()
    put_large_result(task_id)
    with CaptureQueriesContext(connection) as captured:
        html = text_of(admin_client, page(task_id))
    assert len(html) < 100_000
    assert f"Only the first 20,000 characters of {TEN_MEGABYTES + 12:,} bytes." in html
    column = '("tasks_app_task"."result")::text'
    read = "".join(each["sql"] for each in captured)
    assert f"LEFT({column}, 20001)" in read
    rest = read.replace(f"LEFT({column}, 20001)", "").replace(f"octet_length({column})", "")
    assert '"result"' not in rest


def test_large_data_and_long_history_leave_the_page_small(admin_client: Client) -> None:
    """A milestone's data beyond a few kilobytes is only named; beyond a thousand versions only the newest are shown."""
    claimed = running()
    said(claimed, Milestone("progress", 0.1, "x", f'"{"".join(map(str, range(10_000)))}"'))
    said(claimed, *(Milestone("progress", 0.2) for _ in range(SHOWN_ROWS)))
    html = text_of(admin_client, page(claimed.id))
    assert f"Older versions than these {SHOWN_ROWS} are not shown." in html
    assert len(html) < 1_000_000
    said(running(), Milestone("progress", 0.1, "x", f'"{"".join(map(str, range(10_000)))}"'))
    newest = Task.objects.latest("id").pk
    assert re.search(r"<code>[\d,]+ bytes</code>", text_of(admin_client, page(newest)))


def test_a_task_without_history_has_a_page(admin_client: Client) -> None:
    """One that was written by hand, or whose history was."""
    task_id = pending()
    TaskEvent.objects.all().delete()
    assert "No history is kept of this task." in text_of(admin_client, page(task_id))


def test_what_tasks_say_is_escaped(admin_client: Client) -> None:
    """Names, owners, messages, data, arguments, errors: nothing that a task says becomes markup."""
    claimed = running(name=SCRIPT, owner=SCRIPT, queue=SCRIPT, kwargs=f'{{"{SCRIPT}": 1}}')
    said(claimed, Milestone("progress", 0.1, SCRIPT, f'"{SCRIPT}"'))
    said(
        claimed,
        Milestone("failed", None, SCRIPT),
        status=Status.FAILED,
        error_type=SCRIPT,
        error_message=SCRIPT,
        traceback=SCRIPT,
        failed=True,
    )
    for address in (reverse(LIST), f"{reverse(LIST)}?type={SCRIPT}&q={SCRIPT}", page(claimed.id)):
        html = text_of(admin_client, address)
        assert SCRIPT not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_a_task_run_outside_the_workers_says_so(admin_client: Client) -> None:
    """Its worker is no process of ours."""
    task_id = pending()
    notify_step_completed(task_id, "RUNNING", progress=0.5)
    assert "code outside the workers" in text_of(admin_client, page(task_id))


def test_a_task_run_by_an_executor_over_http_says_so(admin_client: Client) -> None:
    """Its worker is a claim, which never was a process."""
    task_id = running().id
    Task.objects.filter(pk=task_id).update(queue=QUEUE, worker=uuid4())
    assert "an executor elsewhere" in text_of(admin_client, page(task_id))


def test_an_unknown_task_leads_back_with_a_message(admin_client: Client) -> None:
    """As for any object that the admin does not find."""
    for unknown in (new_task_id(), "not-an-id"):
        response = admin_client.get(page(unknown), follow=True)
        assert "doesn’t exist" in response.content.decode()


def test_workers_are_shown_with_their_heartbeat(admin_client: Client) -> None:
    """Alive, silent and stopped ones, each with its page."""
    running()
    address = reverse("admin:tasks_app_workerprocess_changelist")
    html = text_of(admin_client, address)
    for shown in ("host-1:4711", "running", "default, mail", "0 of 8", "ms ago"):
        assert shown in html
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tasks_app_workerprocess SET heartbeat_at = now() - interval '1 h'")
    assert ">silent<" in text_of(admin_client, address)
    run(stop_worker(WORKER.id))
    assert "host-1:4711" in text_of(admin_client, address, stopped="yes")
    assert "host-1:4711" not in text_of(admin_client, address, stopped="no")
    html = text_of(admin_client, reverse("admin:tasks_app_workerprocess_change", args=[WORKER.id]))
    assert ">stopped<" in html and "historylink" not in html
    assert f"{reverse(LIST)}?status=RUNNING&amp;q=worker:{WORKER.id}" in html


def test_nothing_can_be_added_edited_or_deleted(admin_client: Client) -> None:
    """Not even by a superuser: it would go round the store."""
    task_id = succeeded()
    for model, pk in (("task", task_id), ("workerprocess", WORKER.id)):
        change, delete = (
            reverse(f"admin:tasks_app_{model}_{verb}", args=[pk]) for verb in ("change", "delete")
        )
        assert admin_client.get(reverse(f"admin:tasks_app_{model}_add")).status_code == 403
        assert admin_client.post(change, {"queue": "other"}).status_code == 403
        assert admin_client.post(delete, {"post": "yes"}).status_code == 403
        html = text_of(admin_client, change)
        assert 'name="_save"' not in html and delete not in html
    assert "delete_selected" not in text_of(admin_client, reverse(LIST))
    assert Task.objects.get(pk=task_id).queue == "default"


def test_a_viewer_sees_everything_and_no_buttons(viewer: Client) -> None:
    """The permission to view is enough to look, and offers nothing to do."""
    for task_id in (succeeded(), pending()):
        html = text_of(viewer, page(task_id)) + text_of(viewer, reverse(LIST))
        assert "asyncpoll-tool" not in html and "cancel_selected" not in html


def test_a_document_can_be_downloaded_whole(admin_client: Client, viewer: Client) -> None:
    """As a file that no browser shows, for those who may look."""
    task_id = succeeded()
    put_large_result(task_id)
    address = reverse("admin:tasks_app_task_download", args=[task_id, "result"])
    assert address in text_of(admin_client, page(task_id))
    answer = viewer.get(address)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{task_id}-result.json"'
    assert len(answer.json()["text"]) == TEN_MEGABYTES
    for name in ("traceback", "owner"):
        missing = reverse("admin:tasks_app_task_download", args=[task_id, name])
        assert viewer.get(missing).status_code == 404
    assert Client().get(address).status_code == 302


def test_attempts_say_who_made_them_and_how_they_ended(admin_client: Client) -> None:
    """Newest first; one that goes on has no end yet."""
    claimed = running()
    said(claimed, Milestone("retried", None, "once more"), status=Status.PENDING, failed=True)
    running()
    tries = admin_client.get(page(claimed.id)).context["history"].tries
    assert [(each.attempt, each.worker, each.ended) for each in tries] == [
        (2, WORKER.id, ""),
        (1, WORKER.id, "Retry scheduled"),
    ]


def test_sensitive_arguments_are_shown_to_nobody(admin_client: Client) -> None:
    """Neither given by name nor by position, on the page or in a file; the rest is as it was, and so is the row."""
    secret = "hunter2"
    kwargs = f'{{"password": "{secret}", "o\\"dd": ["{secret}"], "b": "password"}}'
    ids = [
        pending(name="sample.sign_in", args='["ann"]', kwargs=kwargs),
        pending(name="sample.sign_in", args=f'["ann", "{secret}"]'),
    ]
    for task_id in ids:
        html = text_of(admin_client, page(task_id))
        assert secret not in html and "[hidden]" in html and "ann" in html
        for name in ("args", "kwargs"):
            address = reverse("admin:tasks_app_task_download", args=[task_id, name])
            assert secret not in admin_client.get(address).content.decode()
    assert "&quot;b&quot;: &quot;password&quot;" in text_of(admin_client, page(ids[0]))
    assert Task.objects.get(pk=ids[0]).kwargs["password"] == secret


def test_what_texts_quote_of_sensitive_arguments_is_shown_to_nobody(admin_client: Client) -> None:
    """Messages, errors, tracebacks, data and results: on the list, the page, in files, and in an inbox."""
    secret = "hunter2 or so"
    claimed = running(name="sample.sign_in", kwargs=f'{{"user": "ann", "password": "{secret}"}}')
    said(claimed, Milestone("progress", 0.5, f"trying {secret}", f'{{"with": "{secret}"}}'))
    said(
        claimed,
        Milestone("failed", None, f"gave up on {secret}"),
        status=Status.FAILED,
        error_type="ValueError",
        error_message=f"{secret!r} is wrong",
        traceback=f"Traceback …\nValueError: {secret!r}",
        failed=True,
    )
    text = f"{text_of(admin_client, reverse(LIST))}{text_of(admin_client, page(claimed.id))}"
    assert secret not in text and secret[:6] not in text
    assert text.count("gave up on [hidden]") >= 2 and "trying [hidden]" in text
    assert "{&quot;with&quot;: &quot;[hidden]&quot;}" in text
    for name in ("error_message", "traceback"):
        address = reverse("admin:tasks_app_task_download", args=[claimed.id, name])
        assert "&#x27;[hidden]&#x27;" in text and "[hidden]" in text_of(admin_client, address)
        assert secret not in text_of(admin_client, address)
    over = succeeded(f'{{"token": "{secret}"}}', name="sample.sign_in", args=f'["ann", "{secret}"]')
    address = reverse("admin:tasks_app_task_download", args=[over, "result"])
    assert admin_client.get(address).json() == {"token": "[hidden]"}
    assert secret not in text_of(admin_client, page(over))


def test_an_error_whose_beginning_is_shown_does_not_end_in_a_piece_of_a_secret(
    admin_client: Client,
) -> None:
    """The list cuts it after sixty characters, wherever the secret may be."""
    for length in range(40, 61):
        claimed = running(name="sample.sign_in", kwargs='{"user": "ann", "password": "hunter2"}')
        said(
            claimed,
            Milestone("failed"),
            status=Status.FAILED,
            error_type="E",
            error_message=f"{'.' * length}hunter2 and more",
            failed=True,
        )
    html = text_of(admin_client, reverse(LIST))
    assert "..h" not in html and html.count("..[h") >= 10

"""Actions over all that a filter matches: counted, confirmed, done in batches, never to more."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from tasks_app.limits import new_task_id
from tasks_app.models import Order, Task
from tasks_app.observers import logs
from tasks_app.store import place_order
from tasks_app.store.driver import run
from tasks_app.store.listing import Sought
from tasks_app.store.pool import close_loop_pool, loop_pool
from tasks_app.upkeep import Orders
from tests.integration.admin_support import (
    LIST,
    failed,
    page,
    pending,
    running,
    status_of,
    succeeded,
)
from tests.integration.test_admin_actions import act, staff

ASK = "admin:tasks_app_task_order"


def asked(client: Client, **query: str) -> tuple[int | None, str]:
    """What the page counts, and what it would have confirmed."""
    response = client.get(reverse(ASK), query)
    assert response.status_code == 200
    return response.context["counted"], response.context["frozen"]


def confirmed(client: Client, frozen: str, verb: str) -> list[str]:
    """What is said of a confirmation."""
    response = client.post(reverse(ASK), {"frozen": frozen, "verb": verb}, follow=True)
    return [str(message) for message in response.context["messages"]]


async def carried_out() -> Order:
    """The newest order, once upkeep has done with it."""
    orders = Orders(await loop_pool())
    while await Order.objects.filter(ended_at__isnull=True).aexists():
        await orders.step()
    await close_loop_pool()
    return await Order.objects.alatest("id")


@pytest.mark.django_db
class TestAsking:
    """The page that counts and confirms."""

    def test_the_list_leads_there_with_its_filter(self, admin_client: Client) -> None:
        """A list of everything does not: it would be all tasks."""
        pending(queue="mail")
        address = f"{reverse(ASK)}?queue=mail"
        assert address in admin_client.get(reverse(LIST), {"queue": "mail"}).content.decode()
        assert reverse(ASK) not in admin_client.get(reverse(LIST)).content.decode()

    def test_it_counts_what_matches(self, admin_client: Client) -> None:
        """By filters and by searches that name their field."""
        failed()
        pending(queue="mail", owner="bob")
        pending(owner="bob")
        assert asked(admin_client, status="FAILED")[0] == 1
        assert asked(admin_client, q="owner:bob")[0] == 2
        assert asked(admin_client, q="owner:bob", queue="mail")[0] == 1

    @pytest.mark.parametrize(
        "query", [{}, {"q": "bob"}, {"q": "worker:x"}, {"status": "BOGUS"}, {"q": "owner:"}]
    )
    def test_what_can_not_be_acted_on_as_a_whole_is_refused(
        self, admin_client: Client, query: dict[str, str]
    ) -> None:
        """All tasks at once, and searches that may mean several things."""
        assert asked(admin_client, **query) == (None, "")

    def test_more_than_can_be_counted_is_refused(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Narrow the filter."""
        monkeypatch.setattr("tasks_app.store.orders.MOST_COUNTED", 1)
        monkeypatch.setattr("tasks_app.admin.orders.MOST_COUNTED", 1)
        for _ in range(3):
            pending()
        html = admin_client.get(reverse(ASK), {"status": "PENDING"}).content.decode()
        assert "more than 1. Narrow the filter." in html and '<button class="button"' not in html

    def test_nothing_to_act_on_is_said_with_a_way_back(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The list that shows nothing does not lead there at all, also where older tasks were not looked at."""
        monkeypatch.setattr("tasks_app.admin.changelist.SPAN", 1)
        for _ in range(3):
            pending(queue="mail")
        page_of_none = admin_client.get(reverse(LIST), {"queue": "mail", "q": "worker:nobody"})
        assert "Older" in page_of_none.content.decode()
        assert reverse(ASK) not in page_of_none.content.decode()
        query = {"q": "owner:nobody"}
        assert reverse(ASK) not in admin_client.get(reverse(LIST), query).content.decode()
        html = admin_client.get(reverse(ASK), query).content.decode()
        assert "No task matches" in html and f'href="{reverse(LIST)}?q=owner%3Anobody"' in html

    @pytest.mark.parametrize(
        ("status", "verbs"),
        [
            ("PENDING", {"cancel", "delete"}),
            ("RUNNING", {"cancel", "requeue", "delete"}),
            ("SUCCESS", {"run_again", "delete"}),
        ],
    )
    def test_only_what_can_be_done_to_such_tasks_is_offered(
        self, admin_client: Client, status: str, verbs: set[str]
    ) -> None:
        """Where no status is named, everything is."""
        succeeded()
        running()
        pending()
        offered = admin_client.get(reverse(ASK), {"status": status}).context["verbs"]
        assert {verb.value for verb, _ in offered} == verbs
        offered = admin_client.get(reverse(ASK), {"queue": "default"}).context["verbs"]
        assert {verb.value for verb, _ in offered} == {"cancel", "run_again", "requeue", "delete"}

    def test_a_confirmation_is_signed(self, admin_client: Client) -> None:
        """Nobody confirms another filter than was shown."""
        pending()
        _, frozen = asked(admin_client, status="PENDING")
        assert confirmed(admin_client, frozen[:-1], "cancel")[0].startswith("Nothing was done")
        assert not Order.objects.exists()
        assert admin_client.post(reverse(ASK), {"verb": "explode"}).status_code == 400

    def test_a_page_is_confirmed_once(self, admin_client: Client) -> None:
        """Whoever presses twice, or goes back and presses another button, does nothing more."""
        failed()
        _, frozen = asked(admin_client, status="FAILED")
        assert confirmed(admin_client, frozen, "run_again")[0].startswith("Run 1 task again is on")
        for verb in ("run_again", "delete"):
            assert confirmed(admin_client, frozen, verb) == [
                "Nothing was done: this was confirmed before."
            ]
        assert Order.objects.get().verb == "run_again" and LogEntry.objects.count() == 1

    def test_each_action_needs_its_own_permission(self) -> None:
        """Those without it are not offered, nor taken."""
        pending()
        client = staff("view_task", "cancel_task")
        html = client.get(reverse(ASK), {"status": "PENDING"}).content.decode()
        assert re.findall(r'name="verb" value="(\w+)"', html) == ["cancel"]
        _, frozen = asked(client, status="PENDING")
        assert client.post(reverse(ASK), {"frozen": frozen, "verb": "delete"}).status_code == 403
        assert confirmed(client, frozen, "cancel")[0].startswith("Cancel 1 task is on its way")
        assert staff("view_task").get(reverse(ASK)).status_code == 403
        assert staff("cancel_task").get(reverse(ASK)).status_code == 403

    def test_an_order_is_logged_and_shown(self, admin_client: Client) -> None:
        """Who asked for what, and how far it is."""
        pending()
        _, frozen = asked(admin_client, status="PENDING", type="sample.add")
        [said_so] = confirmed(admin_client, frozen, "cancel")
        assert said_so.startswith("Cancel 1 task is on its way")
        assert LogEntry.objects.get().change_message == (
            "Cancel 1 task: status PENDING, type sample.add."
        )
        listed = admin_client.get(reverse("admin:tasks_app_order_changelist")).content.decode()
        assert "on its way" in listed and "status PENDING, type sample.add" in listed


@pytest.mark.django_db(transaction=True)
class TestCarryingOut:
    """What upkeep does about it."""

    async def test_it_does_what_was_confirmed_in_batches(self, monkeypatch, emitted) -> None:
        """Each task through the store and into the log; those that allow nothing are skipped, which is logged as well."""
        monkeypatch.setattr("tasks_app.upkeep.orders._BATCH", 2)
        waits, done = await prepared()
        order = await carried_out()
        said = {"order": order.id, "by": "ann", "verb": "cancel", "new_id": None}
        of_each = emitted.of("order.task_done")
        assert sorted(facts["id"] for facts in of_each) == sorted(waits)
        assert all(facts == {**said, "id": facts["id"], "status": "PENDING"} for facts in of_each)
        assert emitted.of("order.task_skipped") == [{**said, "id": done, "status": "SUCCESS"}]
        assert [each["count"] for each in emitted.of("order.batch_done")] == [2, 1]
        assert (order.done, order.skipped, order.note) == (3, 1, "")
        assert await states(*waits) == {"CANCELLED"} and await states(done) == {"SUCCESS"}

    async def test_later_tasks_are_left_alone_and_more_than_counted_are_not_touched(self) -> None:
        """It stops, and says so."""
        ids = [await sync_to_async(pending)() for _ in range(3)]
        await sync_to_async(placed)("cancel", Sought(None, queue="default"), counted=2)
        later = await sync_to_async(pending)()
        order = await carried_out()
        assert (order.done, order.skipped) == (2, 0) and "left alone" in order.note
        assert await states(later, ids[0]) == {"PENDING"}

    @pytest.mark.parametrize(
        ("verb", "outcome"), [("run_again", "FAILED"), ("delete", None), ("requeue", "PENDING")]
    )
    async def test_every_verb(self, verb: str, outcome: str | None, caplog) -> None:
        """Run again makes a new task, delete leaves nothing, requeue gives a running one back. A line tells of each."""
        caplog.set_level("INFO", "tasks_app")
        stop_logging = logs.install()
        make = (lambda: running().id) if verb == "requeue" else failed
        task_id = await sync_to_async(make)()
        await sync_to_async(placed)(verb, Sought(None, name="sample.add"), counted=1)
        order = await carried_out()
        assert (order.done, order.skipped) == (1, 0)
        task = await Task.objects.filter(pk=task_id).afirst()
        assert (task.status if task else None) == outcome
        again = [task.id async for task in Task.objects.filter(retried_from=task_id)]
        assert len(again) == (verb == "run_again")
        stop_logging()
        [line] = [text for text in caplog.messages if str(task_id) in text]
        assert line.startswith(
            f"Bulk action {order.id} of ann: {verb} of task {task_id}, which was "
        )
        assert all(line.endswith(f"; the new one is {new_id}") for new_id in again)


@pytest.mark.django_db
class TestASelection:
    """The same over what was ticked."""

    def test_requeue_gives_running_tasks_back(self, admin_client: Client) -> None:
        """Its next claim is another attempt; others are skipped."""
        claimed, over = running(), succeeded()
        assert act(admin_client, "requeue_selected", [claimed.id, over]) == [
            f"Requeued 1 task: {claimed.id}.",
            f"Skipped 1 task, not running (SUCCESS): {over}.",
        ]
        assert status_of(claimed.id) == "PENDING"
        assert "Given back" in admin_client.get(page(claimed.id)).content.decode()

    def test_the_task_page_has_a_button_while_it_runs(self, admin_client: Client) -> None:
        """For those with the permission."""
        task_id = running().id
        button = reverse("admin:tasks_app_task_requeue", args=[task_id])
        assert button in admin_client.get(page(task_id)).content.decode()
        viewer = staff("view_task")
        assert button not in viewer.get(page(task_id)).content.decode()
        assert viewer.post(button).status_code == 403
        assert admin_client.post(button).status_code == 302
        assert status_of(task_id) == "PENDING"
        assert button not in admin_client.get(page(task_id)).content.decode()

    def test_delete_removes_tasks_with_their_history(self, admin_client: Client) -> None:
        """And the log has them."""
        task_id = succeeded()
        assert act(admin_client, "remove_selected", [task_id]) == [f"Deleted 1 task: {task_id}."]
        assert not Task.objects.exists()
        assert LogEntry.objects.get().change_message == "Deleted it."


def placed(verb: str, sought: Sought, counted: int) -> None:
    order = new_task_id()
    run(place_order(order, verb, sought, order, counted, "ann"))


async def prepared() -> tuple[list[UUID], UUID]:
    """Three that wait and one that is over, and an order to cancel them all."""
    done = await sync_to_async(succeeded)()
    waits = [await sync_to_async(pending)() for _ in range(3)]
    await sync_to_async(placed)("cancel", Sought(None, queue="default"), counted=4)
    return waits, done


async def states(*ids: UUID) -> set[str]:
    return {task.status async for task in Task.objects.filter(pk__in=ids)}

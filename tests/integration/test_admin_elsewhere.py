"""The admin in somebody else's project: sites of its own, another language, times without a zone."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import resolve, reverse

from tasks_app.models import Order, Task
from tasks_app.serving.lean import APP_NAME
from tests.integration.admin_support import running, scenery

pytestmark = pytest.mark.django_db
_LINK = re.compile(r'(?:href|action|data-url)="([^"]*)"')


@pytest.fixture(autouse=True)
def elsewhere(settings) -> Iterator[None]:
    """Such a project."""
    settings.ROOT_URLCONF = "tests.elsewhere.urls"
    settings.LANGUAGE_CODE = "de"
    settings.USE_THOUSAND_SEPARATOR = True
    settings.TIME_ZONE = "Europe/Berlin"
    settings.USE_TZ = False
    yield


def visited(client: Client, site: str) -> dict[str, str]:
    """The pages of our app that links lead to, by path; each link stays in its site."""
    found: dict[str, str] = {}
    ahead = [f"{site}tasks_app/", f"{site}tasks_app/task/?status=FAILED"]
    while ahead:
        address = ahead.pop()
        if address in found:
            continue
        response = client.get(address)
        assert response.status_code in (200, 405), (address, response.status_code)
        found[address] = "" if response.streaming else response.content.decode()
        links = {urljoin(address, html.unescape(link)) for link in _LINK.findall(found[address])}
        ours = {each for each in links if "/tasks_app/" in each and "/static/" not in each}
        assert {each for each in ours if not each.startswith(site)} == set()
        ahead += [each for each in ours if re.search(r"^[^?]*(?<!live/|tory/)$|/order/\?", each)]
    return {urlsplit(each).path: page for each, page in found.items() if "<html" in page}


def test_every_page_is_there_and_links_stay_in_its_site(admin_client: Client) -> None:
    """Lists, rows of each kind, the overview and the plan, under another name and another prefix."""
    scenery()
    pages = visited(admin_client, "/back/office/")
    app = "/back/office/tasks_app"
    kinds = {re.sub(r"/[^/]+/change/$", "/…/change/", each) for each in pages}
    for model in ("task", "schedule", "token", "workerprocess", "inboxentry", "delivery", "order"):
        assert {f"{app}/{model}/", f"{app}/{model}/…/change/"} <= kinds
    assert {f"{app}/overview/", f"{app}/overview/plan/", f"{app}/task/order/"} <= kinds
    assert all('lang="de"' in page for page in pages.values())


def test_a_site_that_has_tasks_alone_shows_all_of_them(admin_client: Client) -> None:
    """What is not there is not linked to; an action over all that a filter matches leads to the site's first page."""
    scenery()
    for task_id in Task.objects.values_list("pk", flat=True):
        address = reverse("tasks_only:tasks_app_task_change", args=[task_id])
        assert admin_client.get(address).status_code == 200
    ask = "/back/tasks/tasks_app/task/order/"
    frozen = admin_client.get(ask, {"status": "PENDING"}).context["frozen"]
    answer = admin_client.post(ask, {"frozen": frozen, "verb": "cancel"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/back/tasks/")
    assert Order.objects.filter(verb="cancel").exists()


def test_a_page_there_keeps_up_by_holds(admin_client: Client) -> None:
    """Its polls are served the lean way, and its numbers written as scripts read them: not 1.234."""
    task_id = running().id
    Task.objects.filter(pk=task_id).update(version=1_234)
    address = reverse("ops:tasks_app_task_change", args=[task_id])
    assert 'data-after="1234"' in admin_client.get(address).content.decode()
    poll = resolve(reverse("ops:asyncpoll_task:changes", args=[task_id]))
    assert APP_NAME in poll.app_names
    scenery()
    overview = admin_client.get(reverse("ops:tasks_app_overview_changelist"), {"range": "day"})
    assert 'data-step="3600"' in overview.content.decode()
    overview = admin_client.get(reverse("ops:tasks_app_overview_changelist")).content.decode()
    assert re.search(r'data-at="\d{10}"', overview)
    assert 'data-zone="Europe/Berlin"' in overview


def test_times_without_a_zone_are_the_project_s(admin_client: Client) -> None:
    """And say so."""
    task_id = running().id
    Task.objects.filter(pk=task_id).update(created_at=datetime(2026, 7, 1, 12, 0, 0))
    address = reverse("ops:tasks_app_task_change", args=[task_id])
    assert "2026-07-01 12:00:00.000 CEST" in admin_client.get(address).content.decode()

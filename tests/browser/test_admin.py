"""The admin in Chromium: pages that keep up by themselves, over our own server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.acceptance.processes import said
from tests.browser.scenery import paint
from tests.browser.site import Site, running
from tests.databases import created
from tests.external_tasks import render, shop_render
from tests.support import eventually

PASSWORD = "correct horse"  # of a database that lives as long as this module
_SCREENSHOTS = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
_PICTURES = bool(os.environ.get("ASYNCPOLL_SCREENSHOTS"))
_TOO_WIDE = """
() => [document.documentElement, ...document.querySelectorAll(".results, .asyncpoll-table, .asyncpoll-charts")]
    .filter((each) => each.scrollWidth > each.clientWidth)
    .map((each) => `${each.className}: ${each.scrollWidth} in ${each.clientWidth}`)
"""
_SOON_MS = 20_000  # only a bound on how long a broken page is waited for


@pytest.fixture(scope="module")
def site(migrated_template: str) -> Iterator[Site]:
    """One for all tests here, with somebody who may do everything."""
    with created(os.environ["DATABASE_URL"], migrated_template) as url:
        made = said(
            [
                "manage.py",
                "createsuperuser",
                "--noinput",
                "--username=ann",
                "--email=a@example.org",
            ],
            url,
            DJANGO_SUPERUSER_PASSWORD=PASSWORD,
        )
        assert made[0] == 0, made
        if _PICTURES:
            paint(url)
        with running(url) as site:
            yield site


@pytest.fixture(scope="module")
def signed_in(site: Site, browser: Browser) -> Iterator[BrowserContext]:
    """A profile in which that somebody has signed in."""
    with browser.new_context(viewport={"width": 1300, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{site.origin}/admin/")
        page.fill("#id_username", "ann")
        page.fill("#id_password", PASSWORD)
        page.click("[type=submit]")
        expect(page.locator("#user-tools")).to_be_visible()
        page.close()
        yield context


@pytest.fixture
def page(signed_in: BrowserContext) -> Iterator[Page]:
    """A page of theirs, without a failure in it: neither of a script nor of the policy."""
    page = signed_in.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("console", lambda said: failures.append(said.text) if said.type == "error" else None)
    yield page
    page.close()
    assert failures == []


def unreloaded(page: Page) -> bool:
    """Is it still the document that `page.evaluate("window.first = true")` was said to?"""
    return page.evaluate("() => window.first === true")


def succeeded(page: Page) -> int:
    """How many tasks the table behind the charts says succeeded."""
    cells = page.locator(".asyncpoll-numbers tbody tr[data-at] td:nth-child(2)")
    return sum(map(int, cells.all_text_contents()))


def photographed(page: Page, name: str, *, whole: bool = True) -> None:
    """Keep it under docs/screenshots, in light and dark, where ASYNCPOLL_SCREENSHOTS asks for it."""
    if not _PICTURES:
        return
    _SCREENSHOTS.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)
        page.screenshot(path=_SCREENSHOTS / f"{name}-{scheme}.png", full_page=whole)


def test_the_overview_keeps_up_without_a_reload(site: Site, page: Page) -> None:
    """What runs, what it came to, who works and who serves."""
    page.goto(f"{site.origin}/admin/tasks_app/overview/")
    page.evaluate("window.first = true")
    before = succeeded(page)
    task, other = site.tasks(2)
    row = page.locator("tr", has=page.get_by_role("link", name=render.name))
    expect(row.locator("td").nth(2)).to_have_text("2", timeout=_SOON_MS)
    task.succeed({"pages": 1})
    expect(row.locator("td").nth(2)).to_have_text("1", timeout=_SOON_MS)
    eventually(lambda: succeeded(page) == before + 1)
    assert page.locator("figure canvas").count() == 3
    expect(page.get_by_text("running", exact=True)).to_be_visible(timeout=_SOON_MS)
    expect(page.get_by_text("serving", exact=True)).to_be_visible(timeout=_SOON_MS)
    assert unreloaded(page)
    assert page.evaluate(_TOO_WIDE) == []
    photographed(page, "overview")
    other.succeed(None)


def test_a_task_goes_from_pending_to_success_without_a_reload(site: Site, page: Page) -> None:
    """Its page follows it: status, progress, versions, result; what is opened or pressed meanwhile stays."""
    task_id = site.post("/tasks", task=render.name, kwargs={"pages": ["a.html"]})["task_id"]
    page.goto(f"{site.origin}/admin/tasks_app/task/{task_id}/change/")
    page.evaluate("window.first = true")
    state = page.locator(".field-state .readonly").first
    expect(state).to_have_text("PENDING")
    [task] = site.claimed(1)
    expect(state).to_have_text("RUNNING", timeout=_SOON_MS)
    task.report(0.5, "half of it")
    expect(page.locator("progress")).to_have_attribute("value", "0.500", timeout=_SOON_MS)
    expect(page.locator(".asyncpoll-message").first).to_have_text("half of it")
    task.succeed({"pages": 12, "warnings": ["font missing"]})
    expect(state).to_have_text("SUCCESS", timeout=_SOON_MS)
    expect(page.locator("body > [role=status]")).to_have_text("SUCCESS")
    expect(page.locator("pre").first).to_contain_text('"pages": 12')
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
    assert page.locator(".asyncpoll-history tbody tr").count() >= 5
    assert unreloaded(page)
    photographed(page, "task")


def test_a_refresh_takes_neither_focus_nor_selection(site: Site, page: Page) -> None:
    """What has the focus keeps it, and text that is selected stays until it no longer is; a task that is gone says so."""
    [task] = site.tasks()
    page.goto(f"{site.origin}/admin/tasks_app/task/{task.id}/change/")
    page.get_by_role("link", name="Download: Keyword arguments").focus()
    task.report(0.3, "first")
    message = page.locator(".asyncpoll-message").first
    expect(message).to_have_text("first", timeout=_SOON_MS)
    assert page.evaluate("document.activeElement.textContent") == "Download"
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.asyncpoll-message'))")
    task.report(0.4, "second")
    expect(page.locator("#asyncpoll-live")).to_contain_text("selected", timeout=_SOON_MS)
    assert message.text_content() == "first"
    page.evaluate("getSelection().removeAllRanges()")
    expect(message).to_have_text("second", timeout=_SOON_MS)
    other = page.context.new_page()
    other.goto(f"{site.origin}/admin/tasks_app/task/?q={task.id}")
    other.check("[name=_selected_action]")
    other.select_option("[name=action]", "remove_selected")
    other.click("button[name=index]")  # "Go" here, "Run" from Django 6 on
    expect(other.locator(".messagelist")).to_contain_text("Deleted 1 task")
    other.close()
    expect(page.locator("#asyncpoll-live")).to_have_text("This task was deleted.", timeout=_SOON_MS)


def test_the_plan_fits_the_window(site: Site, page: Page) -> None:
    """With what it says and what it asks."""
    page.goto(f"{site.origin}/admin/tasks_app/overview/plan/")
    page.fill("#id_async_share", "20")
    page.get_by_role("button", name="Compute").click()
    expect(page.get_by_role("heading", name="By task type")).to_be_visible()
    assert page.evaluate(_TOO_WIDE) == []
    photographed(page, "plan")


def test_lists_fit_the_window(site: Site, page: Page) -> None:
    """Status, progress and age of each task, with the filters beside them, without a horizontal scroll."""
    site.post("/tasks", task="demo.dependency_report", kwargs={"limit": 3})
    for task in site.tasks(3)[:2]:
        task.report(
            0.25, "a message that is as long as messages are when somebody means well by us"
        )
    for model in ("task", "workerprocess", "order", "delivery", "inboxentry", "schedule", "token"):
        page.goto(f"{site.origin}/admin/tasks_app/{model}/")
        assert page.evaluate(_TOO_WIDE) == [], model
        if model == "task":
            expect(page.locator("progress").first).to_be_visible()
            photographed(page, "tasks", whole=False)


def test_all_that_a_filter_matches_is_cancelled(site: Site, page: Page) -> None:
    """Counted, confirmed, and done by upkeep."""
    for _ in range(3):
        site.post("/tasks", task=shop_render.name, kwargs={"pages": ["a.html"]})
    page.goto(f"{site.origin}/admin/tasks_app/task/?type=shop.render&status=PENDING")
    page.get_by_role("link", name="Act on all that match").click()
    page.get_by_role("button", name="Cancel 3").click()
    expect(page.locator(".messagelist")).to_contain_text("on its way")
    eventually(lambda: page.reload() and page.get_by_text("done", exact=True).count())
    page.goto(f"{site.origin}/admin/tasks_app/task/?type=shop.render&status=CANCELLED")
    assert page.locator("#result_list tbody tr").count() == 3


def test_the_plan_s_button_stands_where_its_fields_do(site: Site, page: Page) -> None:
    """Neither further in nor further out."""
    page.goto(f"{site.origin}/admin/tasks_app/overview/plan/")
    lefts = [
        page.locator(each).bounding_box()["x"]  # type: ignore[index]
        for each in ("#id_days", ".asyncpoll-inputs button")
    ]
    assert lefts[0] == lefts[1]


def test_a_task_that_is_over_is_not_polled_for(site: Site, page: Page) -> None:
    """Nothing will change any more."""
    [task] = site.tasks()
    task.succeed(None)
    polls: list[str] = []
    page.on("request", lambda sent: polls.append(sent.url) if "/live/" in sent.url else None)
    page.goto(f"{site.origin}/admin/tasks_app/task/{task.id}/change/")
    expect(page.locator("#asyncpoll-live")).to_have_attribute("data-over", "1")
    page.wait_for_load_state("networkidle")
    assert polls == []


def test_pages_fit_a_telephone(site: Site, page: Page) -> None:
    """What is wide is scrolled inside of the page."""
    [task] = site.tasks()
    page.set_viewport_size({"width": 400, "height": 800})
    for path in ("overview/", "overview/plan/", f"task/{task.id}/change/"):
        page.goto(f"{site.origin}/admin/tasks_app/{path}")
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollWidth") == 400, path
    task.succeed(None)

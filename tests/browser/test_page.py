"""The demo page and asyncpoll.js in Chromium, against our own server, its worker, and a proxy that cuts connections."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from tests.browser.scripts import STATIC
from tests.browser.site import Execution, Site, running
from tests.databases import created
from tests.fleet.proxy import Proxy
from tests.support import eventually

DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs" / "browser.md"
CUTS_AT_SECONDS = 3.0
_SOON_MS = 60_000  # only a bound on how long a broken page is waited for
# A page of the same origin, whose policy lets it load the module and call the API.
_IMPORT = (
    "const { Asyncpoll } = await import(new URL('/static/tasks_app/asyncpoll.js', location))"
    ".catch(() => import(new URL('/asyncpoll.js', location)));"
)


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[int]:
    """The port of another server, whose pages are of other origins: one that may call the API, and one that may not."""
    serve = partial(_Files, directory=STATIC)
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def site(migrated_template: str, elsewhere: int) -> Iterator[Site]:
    """One for all tests here."""
    shared = {"ASYNCPOLL_CORS_ORIGINS": f"http://127.0.0.1:{elsewhere}"}
    with created(os.environ["DATABASE_URL"], migrated_template) as url:
        with running(url, **shared) as site:
            yield site


@dataclass(frozen=True, slots=True)
class Learner:
    """A page that waits through a proxy."""

    page: Page
    proxy: Proxy
    task: Execution

    def attempts(self) -> list[dict[str, Any]]:
        """What its requests came to."""
        return self.page.evaluate("() => window.attempts")

    @staticmethod
    def short(attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those that held, and were not cut."""
        return [
            one
            for one in attempts
            if one["kind"] == "answer" and 0 < one["holdMs"] < 1000 * CUTS_AT_SECONDS
        ]


@pytest.fixture(scope="module", autouse=True)
def learner(site: Site, browser: Browser) -> Iterator[Learner]:
    """It takes its time, so it begins before everything else here."""
    proxy = Proxy(site.port, cuts_at=CUTS_AT_SECONDS)
    [task] = site.tasks()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{proxy.port}/demo")
        begin(
            page,
            "window.attempts = [];"
            "const onAttempt = (attempt) => window.attempts.push(attempt);"
            "const poll = new Asyncpoll('/api/v1/', { baseDelayMs: 100, onAttempt });"
            "return (await poll.wait(argument)).result;",
            task.id,
        )
        yield Learner(page, proxy, task)
    proxy.close()


class Polls:
    """The held requests of a page: how many, and how many at once."""

    def __init__(self, page: Page) -> None:
        self.urls: list[str] = []
        self.most_at_once = 0
        self._open = 0
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)

    def _begin(self, request: Request) -> None:
        if "/long_poll" in request.url:
            assert request.method == "GET"
            self.urls.append(request.url)
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)

    def _end(self, request: Request) -> None:
        self._open -= "/long_poll" in request.url


def begin(page: Page, script: str, argument: Any = None) -> None:
    """Run an asynchronous script in the page; `came` waits for what it returns."""
    page.evaluate(
        f"argument => {{ window.came = (async () => {{ {_IMPORT} {script} }})(); window.came.catch(() => {{}}); }}",
        argument,
    )


def came(page: Page) -> Any:
    """What the script returned."""
    return page.evaluate("() => window.came")


def versions(page: Page) -> list[int]:
    """The milestones that the demo page shows, the oldest first."""
    shown = page.locator("#milestones li span:first-child").all_text_contents()
    return [int(text) for text in reversed(shown)]


class TestTheDemoPage:
    """What a visitor sees and does."""

    def test_a_task_goes_from_submission_to_its_result_without_a_reload(
        self, site: Site, page: Page
    ) -> None:
        """Every milestone is listed, also those between two answers."""
        page.goto(f"{site.origin}/demo")
        page.get_by_label("Packages, at most").fill("3")
        page.get_by_role("button", name="Start").click()
        expect(page.locator("#status")).to_have_text("SUCCESS", timeout=_SOON_MS)
        assert versions(page) == list(range(1, len(versions(page)) + 1))
        assert page.get_by_role("progressbar").evaluate("bar => bar.value") == 1
        expect(page.locator("#spoken")).to_have_text("success 100 %")
        expect(page.locator("#summary")).to_contain_text("Packages inspected3")
        expect(page.get_by_role("button", name="Start")).to_be_enabled()
        expect(page.get_by_role("button", name="Cancel")).to_be_disabled()

    def test_after_a_reload_it_goes_on_from_where_it_was_and_cancel_ends_it(
        self, site: Site, page: Page
    ) -> None:
        """The cursor is asked with, the milestones are there, and the worker stops."""
        page.goto(f"{site.origin}/demo")
        page.get_by_role("button", name="Start").click()
        page.locator("#milestones li").nth(3).wait_for(timeout=_SOON_MS)
        polls = Polls(page)
        page.reload()
        eventually(lambda: polls.urls or page.wait_for_timeout(10))
        cursor = re.search(r"task=[\w-]+%3A(\d+)", polls.urls[0])
        assert cursor is not None and int(cursor[1]) >= 4
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#status")).to_have_text("CANCELLED", timeout=_SOON_MS)
        assert versions(page) == list(range(1, len(versions(page)) + 1))

    def test_another_task_takes_the_place_of_the_one_that_was_watched(
        self, site: Site, page: Page
    ) -> None:
        """What the former still has to say is not mixed in."""
        page.goto(f"{site.origin}/demo")
        start = page.get_by_role("button", name="Start")
        start.click()
        page.locator("#milestones li").nth(3).wait_for(timeout=_SOON_MS)
        former = page.locator("#id").text_content()
        page.get_by_label("Packages, at most").fill("2")
        start.click()
        expect(page.locator("#status")).to_have_text("SUCCESS", timeout=_SOON_MS)
        expect(page.locator("#summary")).to_contain_text("Packages inspected2")
        assert versions(page) == list(range(1, len(versions(page)) + 1))
        site.post(f"/tasks/{former}/cancel")

    def test_its_policy_allows_its_own_files_and_nothing_else(self, site: Site) -> None:
        """No inline script or style, no other host, no frame."""
        policy = httpx.get(f"{site.origin}/demo").headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy

    @pytest.mark.parametrize("path", ["/demo", "/demo/demo.js", "/demo/other.js"])
    def test_through_a_proxy_there_is_none(self, site: Site, path: str) -> None:
        """It uses the API without credentials, which is for this machine alone."""
        answer = httpx.get(f"{site.origin}{path}", headers={"X-Forwarded-For": "192.0.2.1"})
        assert answer.status_code == 404
        assert "for development" in answer.json()["detail"]


class TestAgainstOurServer:
    """The module in a page of a project's."""

    def test_many_waits_share_one_held_request(self, site: Site, page: Page) -> None:
        """Twenty tasks end one by one: a handful of requests, never two at once."""
        tasks = site.tasks(20)
        page.goto(f"{site.origin}/demo")
        polls = Polls(page)
        begin(
            page,
            "const poll = new Asyncpoll('/api/v1/', { lingerMs: 500 });"
            "return (await Promise.all(argument.map((id) => poll.wait(id)))).map(({ result }) => result);",
            [task.id for task in tasks],
        )
        eventually(lambda: len(polls.urls) == 2 or page.wait_for_timeout(10))
        for number, task in enumerate(tasks):
            task.succeed(number)
        assert came(page) == list(range(20))
        assert polls.most_at_once == 1
        assert len(polls.urls) <= 10

    def test_tickets_are_all_that_a_page_needs(
        self, site: Site, context: BrowserContext, page: Page
    ) -> None:
        """One request is held for all of them. Without one, a wait is told so at once."""
        tasks = [site.post("/tasks", task="sample.add", kwargs={"a": n, "b": 40}) for n in range(8)]
        page.goto(f"{site.origin}/demo")
        context.set_extra_http_headers({"X-Forwarded-For": "192.0.2.1"})
        polls = Polls(page)
        begin(
            page,
            "const poll = new Asyncpoll();"
            "const refused = await poll.wait(argument[0].task_id).catch((error) => [error.name, error.status]);"
            "const waits = argument.map(({ task_id, poll_ticket: ticket }) => poll.wait(task_id, { ticket, milestones: true }));"
            "return { refused, results: (await Promise.all(waits)).map(({ result }) => result) };",
            tasks,
        )
        assert came(page) == {
            "refused": ["RequestRefused", 401],
            "results": [n + 40 for n in range(8)],
        }
        assert polls.most_at_once == 1

    def test_what_outlives_its_wait_comes_to_the_message_centre(
        self, site: Site, page: Page
    ) -> None:
        """The server has accepted it, the wait says so, and the end is there."""
        [task] = site.tasks()
        page.goto(f"{site.origin}/demo")
        begin(
            page,
            "const wait = new Asyncpoll().wait(argument, { lifetimeMs: 300, notify: { inbox: true } });"
            "return wait.catch((error) => [error.name, error.notified]);",
            task.id,
        )
        assert came(page) == ["PollLifetimeExceeded", True]
        task.succeed("later")
        inbox = site.client.get(f"{site.origin}/api/v1/inbox?max_hold_seconds=20", timeout=30)
        assert task.id in inbox.text

    def test_an_endpoint_that_only_short_polls_is_asked_until_its_status_is_the_end(
        self, site: Site, page: Page
    ) -> None:
        """Here our own, taken for somebody else's."""
        [task] = site.tasks()
        page.goto(f"{site.origin}/demo")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        begin(
            page,
            "const { waitForTerminal } = await import(new URL('/static/tasks_app/asyncpoll.js', location));"
            "return (await waitForTerminal(argument)).result;",
            f"/api/v1/tasks/{task.id}",
        )
        eventually(lambda: len(asked) >= 3 or page.wait_for_timeout(10))
        task.succeed("done")
        assert came(page) == "done"
        assert set(asked[-2:]) == {f"{site.origin}/api/v1/tasks/{task.id}"}

    def test_a_redirect_is_not_followed_but_told(self, site: Site, page: Page) -> None:
        """Below this address everything leads to the login."""
        page.goto(f"{site.origin}/demo")
        begin(page, "return new Asyncpoll('/admin').wait('a').catch((error) => error.message);")
        assert "a redirect, which is not followed" in came(page)

    def test_waiting_asks_caches_to_stay_out_of_it(self, site: Site, page: Page) -> None:
        """In words that HTTP/1.0 knows as well."""
        [task] = site.tasks()
        page.goto(f"{site.origin}/demo")
        with page.expect_request(re.compile("/long_poll")) as asked:
            begin(page, "return new Asyncpoll().wait(argument)", task.id)
        task.succeed(1)
        came(page)
        headers = asked.value.all_headers()
        assert (headers["cache-control"], headers["pragma"]) == ("no-cache", "no-cache")


def test_the_example_of_the_documentation_runs(site: Site, page: Page) -> None:
    """As it stands, in a page that has nothing but the element it writes to."""
    example = re.search(r"```js\n(import .*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    assert example is not None
    address = f"{site.origin}/example"
    html = f'<!doctype html><output></output><script type="module">{example[1]}</script>'
    page.route(address, lambda route: route.fulfill(content_type="text/html", body=html))
    page.goto(address)
    expect(page.locator("output")).to_have_text(re.compile("SUCCESS inspected 3"), timeout=_SOON_MS)


class TestOfAnotherOrigin:
    """The module in a page that another server has."""

    def test_a_listed_one_waits_and_reads_what_it_is_refused(
        self, site: Site, page: Page, elsewhere: int
    ) -> None:
        """After the browser's preflight: a held request that is woken, and 401, 404 and 413 as the server said them."""
        page.goto(f"http://127.0.0.1:{elsewhere}/")
        polls = Polls(page)
        begin(
            page,
            "const refused = (error) => [error.name, error.status, error.problem?.type];"
            "const poll = new Asyncpoll(argument);"
            "const stranger = new Asyncpoll(argument, { token: 'ap_' + 'x'.repeat(56) });"
            "const { task_id, poll_ticket: ticket } = await poll.submit('sample.add', { a: 1, b: 2 });"
            "return {"
            "  result: (await poll.wait(task_id, { ticket })).result,"
            "  unknown: await stranger.get(task_id).catch(refused),"
            "  missing: await poll.get('01a22cd1-5617-761b-bc92-fb57ee6aca68').catch(refused),"
            "  large: await poll.submit('sample.add', { a: 'x'.repeat(2e6) }).catch(refused) };",
            f"{site.origin}/api/v1/",
        )
        assert came(page) == {
            "result": 3,
            "unknown": ["RequestRefused", 401, "/problems/unauthenticated"],
            "missing": ["RequestRefused", 404, "/problems/task-not-found"],
            "large": ["RequestRefused", 413, "/problems/body-too-large"],
        }
        assert polls.urls

    def test_another_one_reads_nothing(self, site: Site, page: Page, elsewhere: int) -> None:
        """The same page by another name."""
        page.goto(f"http://localhost:{elsewhere}/")
        begin(
            page,
            "const options = { mode: 'cors' };"
            "return Promise.all(['tasks', 'nope'].map((path) =>"
            "  fetch(argument + path, options).then(({ status }) => status, ({ name }) => name)));",
            f"{site.origin}/api/v1/",
        )
        assert came(page) == ["TypeError", "TypeError"]


class TestBehindAProxyThatCutsConnections:
    """Each of them when it is 3 s old."""

    def test_the_module_learns_and_finishes(self, learner: Learner) -> None:
        """After the second cut it asks for holds that are shorter, and none of those is cut."""
        eventually(lambda: learner.short(learner.attempts()))
        learner.task.succeed("done")
        assert came(learner.page) == "done"
        attempts = learner.attempts()
        cuts = [one for one in attempts if one["kind"] == "failed"]
        assert 2 <= len(cuts) <= 4
        learned = attempts.index(learner.short(attempts)[0])
        assert attempts.index(cuts[-1]) < learned
        # No storm: a look after each cut, and a hold after each look. Afterwards there is a hold after the other, for
        # as long as the tests before this one take.
        assert learned <= 2 * len(cuts) + 2
        assert learner.proxy.accepted <= len(attempts) + 10

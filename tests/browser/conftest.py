"""A browser for the tests here, and pages in it that must have nothing to complain about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.scripts import Scripts
from tests.programs import program


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, never one that is downloaded. It has to be gone before other tests use an event loop."""
    path = program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def scripts(browser: Browser) -> Iterator[Scripts]:
    """One page for all scripts."""
    with browser.new_context() as context:
        yield Scripts(context.new_page())


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A profile of the test's own."""
    with browser.new_context() as context:
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page; at the end of the test no script in it has failed."""
    page = context.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    yield page
    assert failures == []

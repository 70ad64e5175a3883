"""Scripts that run in a page beside asyncpoll.js and a server played there, by a clock that only the test moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route

STATIC = Path(__file__).resolve().parents[2] / "tasks_app" / "static" / "tasks_app"
_FILES = {
    "/asyncpoll.js": STATIC / "asyncpoll.js",
    "/scripted.js": Path(__file__).with_name("scripted.js"),
}
LIFETIME_MS = 600_000
TICKS = 3  # each timer takes one, also those for no time at all
_ORIGIN = "http://scripted.localhost"


class Scripts:
    """A page for scripts; each begins with a module that remembers nothing, and a clock that stands still."""

    def __init__(self, page: Page) -> None:
        self._page = page
        page.route(f"{_ORIGIN}/**", _serve)
        page.clock.install(time=0)
        page.goto(_ORIGIN)
        page.clock.pause_at(1_000)

    def compute(self, script: str) -> Any:
        """What a script gives that neither waits nor leaves anything behind."""
        return self._page.evaluate(
            f"async () => {{ const m = await import('/scripted.js'); {script} }}"
        )

    def begin(self, script: str) -> None:
        """Begin the body of an asynchronous function, in which `m` has the module and the played server."""
        self._page.goto(_ORIGIN)
        self._page.evaluate(
            "async () => { window.m = await import('/scripted.js');"
            f" window.came = (async () => {{ {script} }})(); window.came.catch(() => {{}}); }}"
        )

    def go_on(self, ms: int) -> None:
        """Move the clock, and let everything happen that is due."""
        self._page.clock.run_for(ms)

    def do(self, expression: str) -> Any:
        """The value of an expression."""
        return self._page.evaluate(f"() => {expression}")

    def came(self) -> Any:
        """What the script returned. It must have."""
        return self.do(
            "Promise.race([window.came, Promise.reject(new Error('It has not ended.'))])"
        )

    def run(self, script: str, ms: int = 0) -> Any:
        """All of it at once, within `ms` of the page's time."""
        self.begin(script)
        self.go_on(ms)
        return self.came()

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The requests that the played server got."""
        return self.do("m.asked")


def _serve(route: Route) -> None:
    file = _FILES.get(route.request.url.removeprefix(_ORIGIN))
    if file is None:
        route.fulfill(content_type="text/html", body="<!doctype html><title>scripted</title>")
    else:
        route.fulfill(content_type="text/javascript", body=file.read_text())


def times(scripts: Scripts) -> list[int]:
    """When each request was sent, in milliseconds."""
    return [request["at"] for request in scripts.asked]

"""Scripts that run in a page beside asyncpoll.js, by a clock that only the test moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route

STATIC = Path(__file__).resolve().parents[2] / "tasks_app" / "static" / "tasks_app"
_FILES = {
    "/asyncpoll.js": STATIC / "asyncpoll.js",
    "/scripted.js": Path(__file__).with_name("scripted.js"),
}
_ORIGIN = "http://scripted.localhost"


class Scripts:
    """A page with the module and a server played in it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        page.route(f"{_ORIGIN}/**", _serve)
        page.clock.install(time=0)
        page.goto(_ORIGIN)
        page.clock.pause_at(1_000)

    def run(self, script: str, for_ms: int = 0) -> Any:
        """Run the body of an async function, in which `m` is the module and the played server, for so long at most."""
        self._page.evaluate(
            f"async () => {{ const m = await import('/scripted.js'); window.came = (async () => {{ {script} }})(); }}"
        )
        self._page.clock.run_for(for_ms)
        return self._page.evaluate(
            "() => Promise.race([window.came, new Promise((_, fail) => queueMicrotask(() => window.came.catch(fail)))])"
        )


def _serve(route: Route) -> None:
    file = _FILES.get(route.request.url.removeprefix(_ORIGIN))
    if file is None:
        route.fulfill(content_type="text/html", body="<!doctype html><title>scripted</title>")
    else:
        route.fulfill(content_type="text/javascript", body=file.read_text())

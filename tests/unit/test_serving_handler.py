"""The handler: which requests are served the lean way, and what every answer carries."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from tasks_app.observers import logs
from tasks_app.serving import lean
from tasks_app.serving.handler import AsyncpollHandler
from tasks_app.serving.wiring import Wiring, process_wiring, wiring_of
from tests.holdsite import holds as holds_module
from tests.holdsite import views
from tests.holdsite.call import Call
from tests.holdsite.holds import Holds
from tests.support import aeventually


@pytest.fixture(autouse=True)
def small_project(settings: Any) -> None:
    """The views of the small project."""
    settings.ROOT_URLCONF = "tests.holdsite.urls"
    settings.MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
    settings.ASYNCPOLL = {"MAX_BODY_BYTES": 10}


@pytest.fixture
def holds(monkeypatch: pytest.MonkeyPatch) -> Holds:
    """What the views of the test wait in."""
    fresh = Holds()
    monkeypatch.setattr(views, "holds", fresh)
    monkeypatch.setattr(holds_module, "holds", fresh)
    return fresh


@pytest.fixture
def lifecycle() -> list[str]:
    """What was started and stopped."""
    return []


@pytest.fixture
def application(holds: Holds, lifecycle: list[str]) -> AsyncpollHandler:
    """A handler on the small project."""

    async def start() -> None:
        lifecycle.append("start")

    async def stop() -> None:
        lifecycle.append("stop")

    return AsyncpollHandler(Wiring(drain=holds, start=start, stop=stop))


class TestLean:
    """Requests whose view belongs to asyncpoll."""

    async def test_a_held_request_has_one_thread_with_everybody(
        self, application: AsyncpollHandler, holds: Holds
    ) -> None:
        """Fifty held requests start no thread."""
        before = threading.active_count()
        calls = [Call(application, "/api/hold") for _ in range(50)]
        await aeventually(lambda: holds.held == 50)
        assert threading.active_count() == before
        holds.release("CHANGED")
        answers = [await call.answer() for call in calls]
        assert {answer.json["outcome"] for answer in answers} == {"CHANGED"}
        assert {answer.headers["content-length"] for answer in answers} == {
            str(len(answers[0].body))
        }

    async def test_a_hang_up_ends_the_view(
        self, application: AsyncpollHandler, holds: Holds
    ) -> None:
        """And the application returns without an error or an answer."""
        call = Call(application, "/api/hold")
        await aeventually(lambda: holds.held == 1)
        call.hang_up()
        await call.task
        assert (holds.held, call.sent) == (0, [])

    async def test_a_server_that_cancels_sees_a_cancellation(
        self, application: AsyncpollHandler, holds: Holds
    ) -> None:
        """It is not swallowed: the client is still there."""
        call = Call(application, "/api/hold")
        await aeventually(lambda: holds.held == 1)
        call.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call.task

    async def test_a_failure_is_logged_and_told_without_details(
        self, application: AsyncpollHandler, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The traceback is for the log."""
        logs.install()
        with caplog.at_level(logging.ERROR, "django.request"):
            answer = await Call(application, "/api/fail/failure").answer()
        assert (answer.status, answer.json["type"]) == (500, "/problems/internal-error")
        assert b"secret" not in answer.body
        assert "secret detail" in caplog.text

    async def test_a_body_over_the_limit_is_refused(self, application: AsyncpollHandler) -> None:
        """Up to the limit it reaches the view."""
        fits = await Call(
            application, "/api/echo", method="POST", body=(b"12345", b"67890")
        ).answer()
        assert fits.json["length"] == 10
        over = await Call(
            application, "/api/echo", method="POST", body=(b"12345", b"678901")
        ).answer()
        assert (over.status, over.closes) == (413, True)

    async def test_a_query_that_is_not_utf8_is_refused(self, application: AsyncpollHandler) -> None:
        """As a problem document."""
        answer = await Call(application, "/api/echo", query_string=b"q=\xff").answer()
        assert (answer.status, answer.json["type"]) == (400, "/problems/invalid-parameter")

    async def test_a_synchronous_view_is_called_too(self, application: AsyncpollHandler) -> None:
        """In a thread, or it would stop the others."""
        answer = await Call(application, "/api/slow", query_string=b"seconds=0").answer()
        assert answer.body == b"slept"

    async def test_an_answer_without_a_body_promises_none(
        self, application: AsyncpollHandler
    ) -> None:
        """304 has no Content-Length."""
        assert "content-length" not in (await Call(application, "/api/nothing").answer()).headers

    async def test_the_mount_point_is_not_part_of_the_path(
        self, application: AsyncpollHandler
    ) -> None:
        """Under a root path the same views are found."""
        answer = await Call(application, "/under/api/state", root_path="/under").answer()
        assert answer.status == 200
        assert lean.lean_match({"path": "/under", "root_path": "/under"}) is None

    async def test_async_middleware_can_be_listed(
        self, holds: Holds, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The outermost first."""
        monkeypatch.setattr(
            lean.LeanHandler, "middleware", (f"{__name__}._outer", f"{__name__}._inner")
        )
        handler = lean.LeanHandler(holds)
        match = lean.lean_match({"path": "/api/state"})
        assert match is not None

        async def application(scope: Any, receive: Any, send: Any) -> None:
            await handler.answer(match, scope, receive, send)

        assert (await Call(application, "/api/state").answer()).headers["order"] == "inner outer"


def _outer(get_response: Any) -> Any:
    return _marking(get_response, "outer")


def _inner(get_response: Any) -> Any:
    return _marking(get_response, "inner")


def _marking(get_response: Any, name: str) -> Any:
    async def middleware(request: Any) -> Any:
        response = await get_response(request)
        response["Order"] = f"{response.get('Order', '')} {name}".strip()
        return response

    return middleware


class TestEverythingElse:
    """Requests that are Django's."""

    async def test_other_views_take_djangos_way(self, application: AsyncpollHandler) -> None:
        """Also unknown paths, whose answer is the project's."""
        assert (await Call(application, "/plain").answer()).body == b"plain"
        missing = await Call(application, "/nowhere").answer()
        assert (missing.status, missing.headers["content-type"]) == (
            404,
            "text/html; charset=utf-8",
        )

    async def test_djangos_limits_apply_there(self, application: AsyncpollHandler) -> None:
        """MAX_BODY_BYTES is for lean views."""
        answer = await Call(application, "/echo", method="POST", body=(b"x" * 50,)).answer()
        assert answer.json["length"] == 50
        assert (lean.body_limit("/echo"), lean.body_limit("/api/echo")) == (67_108_864, 10)

    async def test_a_websocket_is_refused_without_a_word_in_the_log(
        self, application: AsyncpollHandler
    ) -> None:
        """A project that wants WebSockets routes them before this handler; a stranger's handshake is no error."""
        sent = []

        async def receive() -> dict[str, str]:
            return {"type": "websocket.connect"}

        async def send(message: dict[str, str]) -> None:
            sent.append(message)

        await application({"type": "websocket"}, receive, send)
        assert sent == [{"type": "websocket.close"}]

    async def test_other_protocols_are_refused_as_by_django(
        self, application: AsyncpollHandler
    ) -> None:
        """What it never heard of raises."""
        with pytest.raises(ValueError, match="telepathy"):
            await application({"type": "telepathy"}, None, None)


class TestDraining:
    """From the first word of the drain on."""

    @pytest.mark.parametrize("path", ["/api/hold", "/api/state", "/plain", "/nowhere"])
    async def test_every_answer_closes_its_connection(
        self, application: AsyncpollHandler, holds: Holds, path: str
    ) -> None:
        """Held, lean, Django's own and not found."""
        assert "connection" not in (await Call(application, "/plain").answer()).headers
        holds.begin_drain()
        assert (await Call(application, path).answer()).closes

    async def test_a_request_held_before_the_drain_closes_too(
        self, application: AsyncpollHandler, holds: Holds
    ) -> None:
        """What counts is when it is answered."""
        call = Call(application, "/api/hold")
        await aeventually(lambda: holds.held == 1)
        holds.begin_drain()
        answer = await call.answer()
        assert (answer.json["outcome"], answer.closes) == ("DRAINING", True)

    async def test_the_header_is_said_once(
        self, application: AsyncpollHandler, holds: Holds
    ) -> None:
        """A refused body closes anyway."""
        holds.begin_drain()
        call = Call(application, "/api/echo", method="POST", body=(b"x" * 50,))
        await call.task
        names = [name.lower() for name, _ in call.sent[0]["headers"]]
        assert names.count(b"connection") == 1

    async def test_http2_has_no_such_header(
        self, application: AsyncpollHandler, holds: Holds
    ) -> None:
        """There the server closes the connection by other means."""
        holds.begin_drain()
        answer = await Call(application, "/api/state", http_version="2").answer()
        assert "connection" not in answer.headers


class TestWiring:
    """Where drain, start and stop come from."""

    def test_the_handler_says_what_it_was_made_with(self, application: AsyncpollHandler) -> None:
        """The server that runs it drains the same."""
        assert wiring_of(application) is application.wiring

    def test_a_wrapped_application_has_the_wiring_of_the_process(self) -> None:
        """There is only one admission in it."""
        assert wiring_of(lambda scope: None) == process_wiring()

    async def test_lifespan_starts_stops_and_drains(
        self, application: AsyncpollHandler, holds: Holds, lifecycle: list[str]
    ) -> None:
        """For servers that speak it."""
        incoming: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        sent: list[str] = []

        async def send(message: dict[str, str]) -> None:
            sent.append(message["type"])

        incoming.put_nowait({"type": "lifespan.startup"})
        task = asyncio.create_task(application({"type": "lifespan"}, incoming.get, send))
        await aeventually(lambda: sent == ["lifespan.startup.complete"])
        assert (lifecycle, holds.draining) == (["start"], False)
        incoming.put_nowait({"type": "lifespan.shutdown"})
        await task
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert (lifecycle, holds.draining) == (["start", "stop"], True)

"""Whoever can reach the server neither fills its log nor wakes whoever watches it for errors."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied
from django.core.handlers.exception import response_for_exception
from django.http.multipartparser import MultiPartParserError
from django.test import Client, RequestFactory
from django.utils.module_loading import import_string

from tasks_app.observers.lines import formatter
from tasks_app.observers.strangers import MESSAGE_CHARACTERS

LONG = "/" + "x" * 9_000


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the project's own handler writes of Django's records, as JSON."""
    configured = settings.LOGGING
    stream = logging.StreamHandler(io.StringIO())
    for name in configured["handlers"]["stderr"]["filters"]:
        stream.addFilter(import_string(configured["filters"][name]["()"])())
    stream.setFormatter(formatter("json"))
    logging.getLogger("django").addHandler(stream)
    yield stream.stream
    logging.getLogger("django").removeHandler(stream)


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    """The documents."""
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_a_wrong_host_is_one_short_warning(written: io.StringIO) -> None:
    """As every scanner of the internet sends one."""
    host = "a." * 5_000 + "example"
    answer = Client(raise_request_exception=False).get("/admin/", headers={"host": host})
    assert answer.status_code == 400
    (line,) = lines(written)
    assert (line["event"], line["level"]) == ("django.security.DisallowedHost", "WARNING")
    assert "traceback" not in line
    assert line["message"].startswith("Invalid HTTP_HOST header: 'a.a.")
    assert len(line["message"]) == MESSAGE_CHARACTERS


@pytest.mark.parametrize(
    "refused",
    [PermissionDenied, BadRequest, MultiPartParserError],
    ids=lambda kind: kind.__name__,
)
def test_a_refused_request_is_one_short_warning(
    written: io.StringIO, refused: type[Exception]
) -> None:
    """Whatever it is refused for, and however long its path is."""
    try:
        raise refused("x" * 9_000)
    except Exception as error:
        response_for_exception(RequestFactory().get(LONG), error)
    (line,) = lines(written)
    assert line["level"] == "WARNING"
    assert "traceback" not in line
    assert len(line["message"]) <= MESSAGE_CHARACTERS


def test_a_fault_of_the_projects_own_keeps_its_traceback(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one is for whoever runs the server."""
    monkeypatch.setattr(settings, "DEBUG", False)
    try:
        raise RuntimeError("ours")
    except RuntimeError as error:
        response_for_exception(RequestFactory().get("/"), error)
    (line,) = lines(written)
    assert line["level"] == "ERROR"
    assert "RuntimeError: ours" in line["traceback"]

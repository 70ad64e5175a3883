"""What serving answers by itself is a problem document."""

from __future__ import annotations

import json

import pytest
from django.core.exceptions import (
    BadRequest,
    DisallowedHost,
    PermissionDenied,
    RequestDataTooBig,
)
from django.http import Http404

from tasks_app.serving.problems import TOO_SLOW, Refusal, body_too_large, refusal_of


def test_the_raw_message_is_a_whole_http_answer() -> None:
    """It is written to connections from which no request was read."""
    head, _, body = TOO_SLOW.message().partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    assert first == b"HTTP/1.1 408 Request Timeout"
    assert b"Connection: close" in headers
    assert f"Content-Length: {len(body)}".encode() in headers
    assert json.loads(body)["status"] == 408


def test_the_response_names_the_rule_and_closes() -> None:
    """A refused body leaves bytes on the connection, which can't be used again."""
    response = body_too_large(5).response()
    assert (response.status_code, response["Connection"]) == (413, "close")
    assert response["Content-Type"] == "application/problem+json"
    assert response["Content-Length"] == str(len(response.content))
    assert json.loads(response.content)["type"] == "/problems/body-too-large"
    assert "5 bytes" in json.loads(response.content)["detail"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Http404(), 404),
        (PermissionDenied(), 403),
        (RequestDataTooBig("Too big."), 413),
        (DisallowedHost("Invalid HTTP_HOST header."), 400),
        (BadRequest(), 400),
    ],
)
def test_exceptions_that_refuse_keep_their_meaning(error: Exception, status: int) -> None:
    """As in Django, but as a problem document."""
    refusal = refusal_of(error)
    assert isinstance(refusal, Refusal)
    assert (refusal.status, bool(refusal.detail)) == (status, True)


def test_any_other_exception_is_a_failure() -> None:
    """And is logged."""
    assert refusal_of(ValueError("x")) is None

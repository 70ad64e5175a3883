"""Answers and queries that are read and written without Django's detours."""

from __future__ import annotations

import pytest
from django.http import HttpRequest

from asyncpoll.contract import Problem
from tasks_app.api.query import single, values
from tasks_app.api.responses import answer, prepared
from tasks_app.errors import BadParameter


def asked(query):
    request = HttpRequest()
    request.META["QUERY_STRING"] = query
    return request


def test_a_query_parameter_is_read_as_django_reads_it():
    """Encoded, empty, repeated."""
    assert values(asked("a=1&b=%20x+y&a=2&c="), "a") == ["1", "2"]
    assert single(asked("a=1&b=%20x+y&c="), "b") == " x y"
    assert single(asked("a=1&c="), "c") == ""
    assert single(asked(""), "c") is None
    with pytest.raises(BadParameter, match="given more than once"):
        single(asked("a=1&a=1"), "a")


def test_a_prepared_answer_is_the_same_answer():
    """To whoever asks for a header, a status or the content."""
    plain, quick = answer({"a": 1}, ETag='W/"v1"'), prepared({"a": 1}, 'W/"v1"')
    assert quick.is_untouched
    assert dict(quick.wire_headers) == {
        name.encode(): value.encode() for name, value in plain.items()
    }
    assert (quick.status_code, quick.content) == (plain.status_code, plain.content)
    assert dict(quick.items()) == dict(plain.items())
    assert not quick.is_untouched


def test_a_prepared_answer_can_be_changed_by_middleware():
    """It is an HttpResponse from then on."""
    quick = prepared({"a": 1}, 'W/"v1"')
    quick.headers["X-Seen"] = "yes"
    assert quick["X-Seen"] == "yes"
    assert not quick.is_untouched


@pytest.mark.parametrize("problem", Problem)
def test_every_problem_says_in_a_few_words_what_it_is(problem):
    """The title of its document."""
    assert 5 < len(problem.summary) < 60

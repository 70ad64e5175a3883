"""The description leaves nothing out, and says what the views are."""

from __future__ import annotations

import re
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
from django.test import RequestFactory
from pydantic import BaseModel

from asyncpoll.contract import Outcome, Problem
from tasks_app.api import urls
from tasks_app.api.docs import _ASSETS, asset, docs, openapi
from tasks_app.api.openapi import document
from tasks_app.api.openapi.operations import OPERATIONS
from tests import sample_tasks

# What describes the others, what only the server's own operators can use, and the answer to everything that is not there.
OUTSIDE = {"/openapi.json", "/docs", "/docs/{name}", "/probe", "/"}


@pytest.fixture
def described() -> Any:
    return orjson.loads(document("/api/v1"))


def test_every_route_is_described(described):
    """Also those that hold, which no framework knows of."""
    routes = {
        "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern)) for pattern in urls.urlpatterns
    }
    assert routes - OUTSIDE == set(described["paths"])


def test_every_reference_leads_somewhere(described):
    """A client generator would stop at one that does not."""

    def references(part: Any) -> Any:
        if isinstance(part, dict):
            for key, value in part.items():
                yield from [value] if key == "$ref" else references(value)
        elif isinstance(part, list):
            for item in part:
                yield from references(item)

    found = set(references(described))
    assert len(found) > 20
    for reference in found:
        part = described
        for step in reference.removeprefix("#/").split("/"):
            part = part[step]


def test_every_schema_is_one(described):
    """In the dialect of OpenAPI 3.1, which is JSON Schema's own."""
    assert described["openapi"] == "3.1.0"
    for schema in described["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_words_are_those_of_the_contract(described):
    """A new outcome or problem is described because it exists."""
    schemas = described["components"]["schemas"]
    assert schemas["Outcome"]["enum"] == list(Outcome)
    assert schemas["Problem"]["properties"]["type"]["enum"] == list(Problem)


def test_the_names_of_tasks_are_for_those_who_may_submit_them(described):
    """And only of those that are exposed."""
    assert "enum" not in described["components"]["schemas"]["Submission"]["properties"]["task"]
    told = orjson.loads(document("/api/v1", for_submitters=True))
    names = told["components"]["schemas"]["Submission"]["properties"]["task"]["enum"]
    assert "sample.add" in names
    assert "sample.other_queue" not in names


def test_every_answer_says_what_it_means(described):
    """In words of its own, not those of the status: two hundreds of one path mean different things."""
    responses = [
        *described["components"]["responses"].values(),
        *(
            answer
            for path in described["paths"].values()
            for operation in path.values()
            for answer in operation["responses"].values()
            if "$ref" not in answer
        ),
    ]
    phrases = {status.phrase for status in HTTPStatus}
    assert len(responses) > 20
    assert not [each for each in responses if each["description"] in phrases]
    submitted = described["paths"]["/tasks"]["post"]["responses"]
    assert "Idempotent-Replayed" in submitted["200"]["description"]


def test_a_submission_that_can_be_tried_out_is_given(described, monkeypatch):
    """Not one of a task named "string"; another project's own task where its name may be known."""

    def example(described: Any) -> Any:
        body = described["paths"]["/tasks"]["post"]["requestBody"]
        return body["content"]["application/json"]["example"]

    assert example(described) == {"task": "demo.dependency_report", "kwargs": {}}
    document.cache_clear()
    monkeypatch.setattr("tasks_app.catalogue.known", lambda: [sample_tasks.add])
    told = example(orjson.loads(document("/api/v1", for_submitters=True)))
    document.cache_clear()
    assert told == {"task": "sample.add", "kwargs": {}}


def test_names_and_the_way_to_say_who_asks_are_given(described):
    """One name for each, a scope for all but the lease's own."""
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)
    assert described["paths"]["/tasks"]["post"]["security"] == [{"token": []}]
    assert described["paths"]["/tasks/{task_id}"]["get"]["security"] == [
        {"token": []},
        {"ticket": []},
    ]
    assert described["paths"]["/tasks/{task_id}/steps"]["post"]["security"] == []
    assert all(issubclass(o.body, BaseModel) for o in OPERATIONS if o.body)


async def test_it_is_served_wherever_the_api_is_mounted(settings):
    """Its server is the path that it came from; nobody has to say who asks, and is told the less."""
    answer = await openapi(RequestFactory().get("/over/there/openapi.json", HTTP_HOST="elsewhere"))
    assert "sample.add" not in answer.content.decode()
    assert answer.headers["Content-Type"] == "application/json"
    assert orjson.loads(answer.content)["servers"] == [{"url": "/over/there"}]


async def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline():
    """Its policy forbids both, and it does without."""
    answer = await docs(RequestFactory().get("/api/v1/docs"))
    page, policy = answer.content.decode(), answer.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert "//" not in page.partition(">")[2]
    assert re.findall(r"<script(.*?)>(.*?)</script>", page) == [
        (' src="docs/swagger-ui-bundle.js"', ""),
        (' src="docs/start.js"', ""),
    ]
    assert not re.search(r"\son\w+=|style=", page)


async def test_the_page_s_parts_come_out_of_the_package():
    """With their types, and nothing else from that folder."""
    types = {".css": "text/css", ".js": "text/javascript", ".png": "image/png"}
    for name in _ASSETS:
        answer = await asset(RequestFactory().get(f"/api/v1/docs/{name}"), name=name)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith(types[Path(name).suffix])
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.content
    for name in ("docs.html", "LICENSE", "../docs.py", "..", ""):
        answer = await asset(RequestFactory().get("/api/v1/docs/x"), name=name)
        assert answer.status_code == 404

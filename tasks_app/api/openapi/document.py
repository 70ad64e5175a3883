"""The document, made once for each address that the API is mounted at."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Any

import orjson
from pydantic import BaseModel

from asyncpoll.contract import JSON_MEDIA_TYPE, PROBLEM_MEDIA_TYPE
from tasks_app import catalogue
from tasks_app.api.openapi.operations import OPERATIONS, Operation
from tasks_app.api.openapi.shapes import SHAPES, TEXT, Shape, reference, words
from tasks_app.api.submission import Submission

_ABOUT = (
    "Wait for long-running tasks over plain HTTP. Answers that are no success are problem documents (RFC 9457). Unknown "
    "query parameters are ignored. HEAD is GET without holding."
)
_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of `manage.py createtoken`, or what the project's AUTHENTICATE asks for.",
    },
    "ticket": {
        "type": "apiKey",
        "in": "query",
        "name": "ticket",
        "description": "The `poll_ticket` of a submission: reads that one task. `tasks/long_poll` takes one for each task.",
    },
}


_PROBLEMS = {
    400: "A parameter breaks a rule, or the body is not JSON; `parameter` names the offender.",
    401: "No credentials, or some that are forged, expired or revoked.",
    403: "The credentials lack the scope, which `detail` names.",
    404: "There is no such task or entry, or it is somebody else's.",
    405: "Another method is meant; `Allow` has them.",
    409: "The lease is not the caller's any more: stop working on the task.",
    410: "The task was deleted.",
    413: "The body is too large.",
    415: "The body does not say that it is JSON.",
    422: "The body is JSON and breaks a rule; nothing was stored.",
    429: "Too many requests of one caller; `Retry-After` says when to go on.",
    503: "Too many requests are held here, or the database does not answer; `Retry-After` says when to go on.",
}
_DEMO = "demo.dependency_report"


@lru_cache(maxsize=16)
def document(mounted_at: str, for_submitters: bool = False) -> bytes:
    """OpenAPI 3.1, as JSON. `mounted_at` is the path that all others are below.

    `for_submitters`: with the names of the tasks that can be submitted, which are not everybody's business.
    """
    return orjson.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "asyncpoll", "version": "1", "description": _ABOUT},
            "servers": [{"url": mounted_at}],
            "paths": _paths(for_submitters),
            "components": {
                "schemas": SHAPES | _bodies(for_submitters),
                "responses": _problems(),
                "securitySchemes": _SCHEMES,
            },
        }
    )


def _paths(for_submitters: bool) -> dict[str, dict[str, Any]]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    submit = paths["/tasks"]["post"]["requestBody"]["content"][JSON_MEDIA_TYPE]
    submit["example"] = {"task": _example_name(for_submitters), "kwargs": {}}
    return paths


def _example_name(for_submitters: bool) -> str:
    """A task that can be submitted, for who may know; the demo's where that is there, or nobody may know."""
    names = _exposed() if for_submitters else []
    return names[0] if names and _DEMO not in names else _DEMO


def _exposed() -> list[str]:
    return [task.name for task in catalogue.known() if task.expose]


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": list(operation.parameters),
        "responses": _responses(operation),
        "security": _security(operation),
    }
    if operation.scope is not None:
        described["description"] = f"Needs the scope `{operation.scope}`."
    if operation.body is not None:
        schema = {"schema": reference(operation.body.__name__)}
        described["requestBody"] = {"required": True, "content": {JSON_MEDIA_TYPE: schema}}
    return described


def _responses(operation: Operation) -> dict[str, Any]:
    answers = {
        str(status): _answer(operation.says[status], shape, operation.headers.get(status, ()))
        for status, shape in operation.answers.items()
    }
    problems = {
        str(status): {"$ref": f"#/components/responses/{_problem_name(status)}"}
        for status in operation.problems
    }
    return answers | problems


def _answer(says: str, shape: str | None, headers: tuple[str, ...]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": says}
    if headers:
        described["headers"] = {name: {"schema": TEXT} for name in headers}
    if shape is not None:
        described["content"] = {JSON_MEDIA_TYPE: {"schema": reference(shape)}}
    return described


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    if operation.scope is None:
        return []
    return [{"token": []}, {"ticket": []}] if operation.ticket else [{"token": []}]


def _problem_name(status: int) -> str:
    return HTTPStatus(status).name.title().replace("_", "")


def _problems() -> dict[str, Any]:
    statuses = sorted({status for operation in OPERATIONS for status in operation.problems})
    return {_problem_name(status): _problem(status) for status in statuses}


def _problem(status: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "description": _PROBLEMS[status],
        "content": {PROBLEM_MEDIA_TYPE: {"schema": reference("Problem")}},
    }
    headers = {401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}
    if status in headers:
        described["headers"] = {headers[status]: {"schema": TEXT, "required": True}}
    return described


def _bodies(for_submitters: bool) -> dict[str, Shape]:
    """The models that bodies are checked against, with what they refer to."""
    shapes: dict[str, Shape] = {}
    for operation in OPERATIONS:
        if operation.body is not None:
            shapes |= _body(operation.body)
    if for_submitters:
        submission = shapes[Submission.__name__]["properties"]
        submission["task"] = words(_exposed(), "A task that can be submitted.")
    return shapes


def _body(model: type[BaseModel]) -> dict[str, Shape]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), model.__name__: schema}

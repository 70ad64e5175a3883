"""Bodies of the views that are not django-ninja's: decoded, limited, and checked against a schema."""

from __future__ import annotations

from typing import TypeVar

from django.http import HttpRequest
from pydantic import BaseModel, ValidationError

from asyncpoll.contract import Problem
from tasks_app.api.responses import ProblemRaised, problem
from tasks_app.api.routes import check_body
from tasks_app.store.jsontext import clean_text

_SHOWN_CHARACTERS = 60

M = TypeVar("M", bound=BaseModel)


def read_json(request: HttpRequest, model: type[M]) -> M:
    """The body as a `model`. Raises ProblemRaised, naming what breaks which rule."""
    check_body(request)
    try:
        return model.model_validate(request.json_body)  # type: ignore[attr-defined]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = clean_text(str(first["loc"][0]))[:_SHOWN_CHARACTERS] if first["loc"] else "body"
        raise ProblemRaised(
            problem(Problem.INVALID_BODY, 422, f"{where}: {first['msg']}.", parameter=where)
        ) from None

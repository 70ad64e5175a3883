"""Do these arguments fit that function? Names by its signature, JSON types by its annotations."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from tasks_app.errors import InvalidArguments

_MOST_ERRORS = 1_000


def check_names(
    name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by parameter name. Raises InvalidArguments naming the one that does not fit."""
    signature = inspect.signature(func)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidArguments(f"{name}{_written(signature)}: {error}.") from None
    return dict(bound.arguments)


class _AsWritten(str):
    """An annotation whose evaluation is postponed, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _written(signature: inspect.Signature) -> str:
    """The parameters, as the declaration has them."""
    parameters = [
        each.replace(annotation=_AsWritten(each.annotation))
        if isinstance(each.annotation, str)
        else each
        for each in signature.parameters.values()
    ]
    return str(inspect.Signature(parameters))


def check_types(name: str, func: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Check JSON values against the annotations of `func`. Raises InvalidArguments naming value and rule."""
    adapters = _adapters(func)
    for parameter, value in arguments.items():
        adapter = adapters.get(parameter)
        if adapter is None:
            continue
        try:
            adapter.validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            raise InvalidArguments(f"{name}: {_first(parameter, value, error)}.") from None


def _first(parameter: str, value: Any, error: ValidationError) -> str:
    """What is wrong, and where. Pydantic lists all errors or none, and half a million take a second to list."""
    if error.error_count() > _MOST_ERRORS:
        return f"{parameter} is {_short(value)}, with {error.error_count():,} values in it that do not fit"
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in (parameter, *first["loc"]))
    return f"{where} is {_short(value)}. {first['msg']}"


@lru_cache(maxsize=1024)
def _adapters(func: Callable[..., Any]) -> dict[str, TypeAdapter[Any]]:
    """A validator per annotated parameter; one whose annotation pydantic can't read is not checked."""
    plain = {
        parameter.name
        for parameter in inspect.signature(func).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    try:
        hints = get_type_hints(func, include_extras=True)
    except (NameError, TypeError):
        return {}
    adapters = {}
    for parameter in plain & hints.keys():
        try:
            adapters[parameter] = TypeAdapter(hints[parameter])
        except PydanticUserError:
            continue
    return adapters


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

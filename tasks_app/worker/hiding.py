"""What a task declares `sensitive`, kept out of what is told of its errors."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator

from tasks_app import catalogue
from tasks_app.errors import UnknownTask
from tasks_app.redaction import texts_in, without
from tasks_app.store import Claimed


def without_arguments(claimed: Claimed, text: str) -> str:
    """`text` without the values that this attempt was given for sensitive parameters."""
    return without(_secrets(claimed), text) if text else text


def _secrets(claimed: Claimed) -> Iterator[str]:
    try:
        declared = catalogue.find(claimed.name)
    except UnknownTask:
        return
    if not declared.sensitive:
        return
    args, kwargs = json.loads(claimed.args), json.loads(claimed.kwargs)
    given = dict(zip(inspect.signature(declared.func).parameters, args, strict=False)) | kwargs
    for name in declared.sensitive:
        yield from texts_in(given.get(name))

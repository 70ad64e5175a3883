"""Tasks without a Python function here: programs elsewhere claim and run them over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema.protocols import Validator

from tasks_app import catalogue, queues
from tasks_app.declaration import Task
from tasks_app.errors import InvalidArguments, InvalidTask
from tasks_app.jsonschemas import make_validator, validate
from tasks_app.retries import Backoff
from tasks_app.store.jsontext import to_json


@dataclass(frozen=True, slots=True, eq=False)
class ExternalTask(Task[..., Any]):
    """A declared task that no worker of ours runs. `validator` None takes any arguments."""

    validator: Validator | None = None

    @property
    def is_external(self) -> bool:
        """True: no worker of ours may claim it."""
        return True

    @property
    def path(self) -> str:
        """What declares it."""
        return f"external_task({self.name!r}, queue={self.queue!r})"

    def using(self, **changes: Any) -> Task[..., Any]:
        """Like `Task.using`; another `queue` has to be external as well."""
        changed = Task.using(self, **changes)
        if queues.reserved_by(changed.queue) is None:
            raise InvalidTask(
                f"Task {self.name!r}: queue {changed.queue!r} is for workers of ours; declare an external task on it."
            )
        return changed

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise InvalidArguments unless the keyword arguments fit the schema, or NotJson where they are not JSON."""
        if self.validator is not None:
            self.check_json(args, json.loads(to_json(dict(kwargs), f"{self.name}: kwargs")))

    def check_json(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """The same for what is JSON already, which is what a schema speaks of."""
        if self.validator is None:
            return
        if args:
            raise InvalidArguments(
                f"{self.name} takes keyword arguments only, as its schema describes them; name each argument."
            )
        validate(self.name, self.validator, kwargs)


def external_task(
    name: str,
    schema: Mapping[str, Any] | None = None,
    queue: str = "external",
    *,
    priority: int = 0,
    max_attempts: int | None = None,
    backoff: Backoff | None = None,
    timeout: float | None = None,
    expose: bool = False,
    sensitive: Sequence[str] = (),
) -> ExternalTask:
    """Declare a task that executors outside this code base claim from `queue` and report on, over HTTP.

    `schema` is a JSON Schema (2020-12 unless its `$schema` says otherwise) for the keyword arguments as one object. The
    queue is theirs alone: `runworker` refuses it. The other options are those of `@task`. Raises InvalidTask.
    """
    declared = ExternalTask(
        func=_not_here,
        name=name,
        queue=queue,
        priority=priority,
        max_attempts=max_attempts,
        backoff=backoff,
        timeout=timeout,
        expose=expose,
        sensitive=tuple(sensitive),
        validator=None if schema is None else make_validator(name, schema),
    )
    catalogue.register(declared)
    queues.reserve(queue, f"task {name!r}")
    return declared


def _not_here(*args: Any, **kwargs: Any) -> Any:
    raise InvalidTask(
        "An external task has no function here; enqueue it, and let an executor claim it over HTTP."
    )

"""POST …/tasks/{id}/steps: an executor outside this code base says where its task is. The lease token is all it needs."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    model_validator,
)

from asyncpoll.contract import Status
from tasks_app import conf
from tasks_app.api.bodies import read_json
from tasks_app.api.guard import api_view, parse_task_id
from tasks_app.api.identity import Identity
from tasks_app.api.leases import read_token
from tasks_app.api.reporting import Said, take
from tasks_app.api.responses import answer
from tasks_app.limits import MAX_NAME_LENGTH
from tasks_app.owned import owned
from tasks_app.store.jsontext import clean_text, to_json
from tasks_app.worker.milestones import MESSAGE_CHARACTERS, progress_milestone

_ERROR_CHARACTERS = 4_000
_UNNAMED = "Failed"


class StepError(BaseModel):
    """Why an attempt failed."""

    model_config = ConfigDict(extra="forbid")

    type: StrictStr = Field(default=_UNNAMED, min_length=1, max_length=MAX_NAME_LENGTH)
    message: StrictStr = ""


def _goes_with(field: str, status: Status) -> dict[str, Any]:
    """The schema of: a `field` that is there and not null comes with that status."""
    given = {"required": [field], "properties": {field: {"not": {"type": "null"}}}}
    fits = {"required": ["status"], "properties": {"status": {"const": status.value}}}
    return {"if": given, "then": fits}


class StepBody(BaseModel):
    """What an executor sends. PENDING gives the task back, for somebody else to run."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "allOf": [_goes_with("result", Status.SUCCESS), _goes_with("error", Status.FAILED)]
        },
    )

    lease_token: StrictStr = Field(max_length=300)
    status: Status = Status.RUNNING
    progress: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    message: StrictStr | None = Field(default=None, max_length=MESSAGE_CHARACTERS)
    data: dict[str, Any] | None = None
    result: Any = None
    error: StepError | StrictStr | None = None
    retryable: StrictBool = True

    @model_validator(mode="after")
    def _fits_its_status(self) -> StepBody:
        if self.result is not None and self.status is not Status.SUCCESS:
            raise ValueError("result goes with status SUCCESS only; use data for the rest")
        if self.error is not None and self.status is not Status.FAILED:
            raise ValueError("error goes with status FAILED only")
        return self


@api_view("POST")
async def take_step(request: HttpRequest, task_id: str) -> HttpResponse:
    """Extend the lease and make the step visible. 409 once the lease is not theirs; a repeated end is no error."""
    body = read_json(request, StepBody)
    lease = read_token(parse_task_id(task_id, Identity(owner=None)), body.lease_token)
    standing = await owned(take(lease, _said(body)))
    return answer(
        {
            "task_id": lease.task_id,
            "attempt": lease.attempt,
            "status": standing.status,
            "version": standing.version,
            "cancel_requested": standing.cancel_requested,
            "lease_expires_at": standing.lease_expires_at,
            "repeated": standing.repeated,
        }
    )


def _said(body: StepBody) -> Said:
    """Raises NotJson for a result or data that can't be stored."""
    error = StepError(message=body.error) if isinstance(body.error, str) else body.error
    is_failure, is_success = body.status is Status.FAILED, body.status is Status.SUCCESS
    limit = conf.current().MAX_RESULT_BYTES
    return Said(
        status=body.status,
        milestone=progress_milestone(body.progress, body.message or "", body.data),
        result=to_json(body.result, "result", limit) if is_success else None,
        error_type=clean_text((error or StepError()).type) or _UNNAMED if is_failure else "",
        error_message=clean_text(error.message)[:_ERROR_CHARACTERS] if error else "",
        retryable=body.retryable,
    )

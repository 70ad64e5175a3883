"""What somebody who asks to be told of a task's end sends."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, StrictStr, Tag

from tasks_app.webhooks.targets import MOST_CHARACTERS


class InboxNotice(BaseModel):
    """Tell the owner's inbox."""

    model_config = ConfigDict(extra="forbid")

    inbox: Literal[True]


class WebhookNotice(BaseModel):
    """Tell a webhook of the owner's."""

    model_config = ConfigDict(extra="forbid")

    webhook: StrictStr = Field(max_length=MOST_CHARACTERS, pattern="^https://")


def _kind(given: Any) -> str:
    is_webhook = isinstance(given, WebhookNotice) or (
        isinstance(given, dict) and "webhook" in given
    )
    return "webhook" if is_webhook else "inbox"


Notice = Annotated[
    Annotated[InboxNotice, Tag("inbox")] | Annotated[WebhookNotice, Tag("webhook")],
    Discriminator(_kind),
]
"""`{"inbox": true}` or `{"webhook": "https://…"}`."""


class NotifyBody(RootModel[Notice]):
    """What somebody who asks to be told sends."""

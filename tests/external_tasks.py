"""Tasks that executors outside this code base run."""

from __future__ import annotations

from tasks_app.tasks import external_task

QUEUE = "elsewhere"
SCHEMA = {
    "type": "object",
    "properties": {
        "pages": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "dpi": {"type": "integer", "minimum": 1},
    },
    "required": ["pages"],
    "additionalProperties": False,
}

render = external_task("sample.render", SCHEMA, QUEUE, expose=True)
shop_render = external_task("shop.render", SCHEMA, QUEUE, expose=True)
anything = external_task(
    "sample.anything", queue=QUEUE, max_attempts=1, expose=True, sensitive=["pin"]
)

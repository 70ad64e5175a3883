"""The API described by itself: an OpenAPI 3.1 document, built from the words and limits that the views use."""

from tasks_app.api.openapi.document import document

__all__ = ["document"]

"""An answer that is encoded already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse

WireHeaders = Sequence[tuple[bytes, bytes]]


class PreparedResponse(HttpResponse):
    """A 200 whose headers and body are bytes already, for a handler that sends them as they are.

    Making a response of Django's and taking it apart again is a third of what it costs to wake a waiter. To anybody
    else this is such a response: it becomes one when first asked for what only that has.
    """

    def __init__(self, body: bytes, wire_headers: WireHeaders) -> None:
        self.body = body
        self.wire_headers = wire_headers

    @property
    def is_untouched(self) -> bool:
        """True while nobody can have changed it."""
        return "_container" not in self.__dict__

    def __getattr__(self, name: str) -> Any:
        # Python comes here only for what __init__ did not set.
        if not self.is_untouched:
            raise AttributeError(name)
        headers = {key.decode("ascii"): value.decode("latin1") for key, value in self.wire_headers}
        super().__init__(self.body, headers=headers)
        return getattr(self, name)

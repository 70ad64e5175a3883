"""Numbers in bodies, as JSON has them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, StrictInt


def _whole(value: Any) -> Any:
    """JSON Schema knows no floats: 3.0 is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[StrictInt, BeforeValidator(_whole)]
"""An integer, however its JSON is written; no flag, and no text."""

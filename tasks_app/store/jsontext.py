"""Python values as JSON text that Postgres will take."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from tasks_app.errors import NotJson

# Postgres can't store the NUL character in text or jsonb; Python's encoder writes it like this.
_NUL = "\\u0000"
# Postgres stores 1e308 as the 309 digits that it stands for, and gives it back like that.
_EXPONENT = re.compile(r"\de[+-]?\d")
_encoder = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def to_json(value: Any, what: str, limit: int | None = None) -> str:
    """`value` as JSON text. `what` names it in the message. Raises NotJson with the reason and the remedy.

    `limit` is the largest size in bytes of UTF-8, as Postgres will give the text back.
    """
    try:
        text = _encoder.encode(value)
        size = len(text.encode("utf-8"))
        if _EXPONENT.search(text):
            size += _unfolding(value)
        has_nul = _NUL in text and _holds_nul(value)
    except TypeError as error:
        raise NotJson(
            f"{what} is not JSON: {error}. Use dicts, lists, strings, numbers, booleans or None."
        ) from None
    except UnicodeEncodeError:
        raise NotJson(
            f"{what} contains a lone surrogate, which is not text; decode it with errors='replace'."
        ) from None
    except (ValueError, RecursionError) as error:
        raise NotJson(
            f"{what} is not JSON: {error}. NaN, Infinity, circular and very deep values can't be stored."
        ) from None
    if limit is not None and size > limit:
        raise NotJson(
            f"{what} is {size:,} bytes of JSON; the limit is {limit:,}. Store it elsewhere and return a reference."
        )
    if has_nul:
        raise NotJson(f"{what} contains the NUL character, which Postgres can't store; remove it.")
    return text


def clean_text(text: str) -> str:
    """`text` without what Postgres can't store: NUL removed, lone surrogates replaced."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def _unfolding(value: Any) -> int:
    """The bytes by which the numbers in `value` are longer without an exponent."""
    if isinstance(value, float):
        written = repr(value)
        return len(format(Decimal(written), "f")) - len(written) if "e" in written else 0
    if isinstance(value, dict):
        return sum(_unfolding(part) for part in value.values())
    if isinstance(value, list | tuple):
        return sum(_unfolding(part) for part in value)
    return 0


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_holds_nul(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple):
        return any(_holds_nul(part) for part in value)
    return False

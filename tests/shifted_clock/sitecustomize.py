"""Shifts what Python takes for the time by SHIFT_SECONDS: for processes that have this folder in PYTHONPATH."""

from __future__ import annotations

import datetime
import os
import time
import uuid
from typing import Any

import uuid_utils.compat

_SHIFT = float(os.environ["SHIFT_SECONDS"])
_real_time, _real_datetime, _real_uuid7 = time.time, datetime.datetime, uuid_utils.compat.uuid7


class _Kind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _real_datetime)


class _Shifted(_real_datetime, metaclass=_Kind):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _real_datetime.now(tz) + datetime.timedelta(seconds=_SHIFT)

    @classmethod
    def utcnow(cls) -> Any:
        return _real_datetime.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(
            seconds=_SHIFT
        )


def _shifted_time() -> float:
    return _real_time() + _SHIFT


def _shifted_time_ns() -> int:
    return int(_shifted_time() * 1e9)


def _shifted_uuid7() -> uuid.UUID:
    # It begins with 48 bits of milliseconds.
    return uuid.UUID(int=_real_uuid7().int + (int(_SHIFT * 1000) << 80))


time.time, time.time_ns = _shifted_time, _shifted_time_ns
datetime.datetime = _Shifted  # type: ignore[misc]
uuid_utils.compat.uuid7 = _shifted_uuid7

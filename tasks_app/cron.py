"""Cron arithmetic: when a schedule ticks next. Takes the time as an argument and does no I/O."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from tasks_app.errors import InvalidSchedule


def next_tick(cron: str, zone: str, after: datetime) -> datetime:
    """The first tick of `cron` on the clocks of `zone` that is later than `after`, in UTC.

    Five fields, or six of which the first is seconds. Where clocks change it does what Debian's cron does: a time of
    day that is skipped ticks at the end of the gap, one that comes twice ticks the first time; what begins with `*` in
    its minutes or hours follows the time that really passes. Raises InvalidSchedule for an unknown zone, a bad
    expression, or one that never ticks.
    """
    local = after.astimezone(_zone(zone))
    try:
        # In an hour that comes twice, cronsim counts from its first time and would go back.
        return next(tick for tick in map(_in_utc, CronSim(cron, local)) if tick > after)
    except CronSimError as error:
        raise InvalidSchedule(
            f"cron is {cron!r} ({error}); write minute, hour, day of month, month and day of week, "
            "for example '*/5 * * * *'."
        ) from None
    except StopIteration:
        raise InvalidSchedule(
            f"cron is {cron!r}, which never ticks; name a day that exists."
        ) from None


def _in_utc(tick: datetime) -> datetime:
    # Two times of one zone are compared by what the clock shows, which goes back once a year.
    return tick.astimezone(UTC)


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidSchedule(
            f"timezone is {name!r}, which is unknown; use a name such as 'Europe/Berlin' or 'UTC'."
        ) from None

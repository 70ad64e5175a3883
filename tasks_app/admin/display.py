"""How values look: small pieces of text and HTML, escaped."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from asyncpoll.contract import Status, percent

NOTHING = "-"
"""Shown for a value that is not there, as the admin does for its own fields."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def badge(word: str, tone: str) -> SafeString:
    """A coloured word. `tone` is a class of `admin.css`."""
    return format_html('<span class="asyncpoll-badge asyncpoll-{}">{}</span>', tone, word)


def status_badge(status: str, *, stalled: bool = False, stopping: bool = False) -> SafeString:
    """The status of a task; a RUNNING one may be `stalled` (nobody extends its lease) or `stopping` (its cancel was
    asked for).
    """
    notes = [badge("stalled", "stalled")] * stalled + [badge("stopping", "cancelled")] * stopping
    return format_html_join(
        " ", "{}", ((part,) for part in (badge(status, status.lower()), *notes))
    )


def progress_bar(fraction: float | None, status: str = Status.RUNNING) -> SafeString | None:
    """A bar with its percentage, or None where nothing was reported or a success leaves nothing to say."""
    if fraction is None or status == Status.SUCCESS:
        return None
    return format_html(
        '<progress class="asyncpoll-progress" aria-label="Progress" max="1" value="{}"></progress> {}',
        f"{fraction:.3f}",
        percent(fraction),
    )


def duration(length: timedelta, units: int = 2) -> str:
    """A length of time in its largest `units`, 1 or 2: 340 ms, 4.2 s, 3 min 12 s, 2 h 5 min, 3 d 4 h."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rest = round(seconds)
    parts: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        parts += [f"{count} {unit}"] if count or parts else []
    return " ".join(parts[:units])


def moment(at: datetime | None, timespec: str = "seconds") -> str:
    """A time in the time zone that the page is shown in; `timespec` as for `datetime.isoformat`."""
    if at is None:
        return NOTHING
    local = timezone.localtime(aware(at))
    shown = local.replace(tzinfo=None).isoformat(sep=" ", timespec=timespec)
    return f"{shown} {local.tzname()}"


def aware(at: datetime) -> datetime:
    """With a zone: a project that turns USE_TZ off reads times without, which are in its own."""
    return at if timezone.is_aware(at) else timezone.make_aware(at, timezone.get_default_timezone())


def instant(at: datetime | None) -> str:
    """The same to the millisecond, where a second is long."""
    return moment(at, "milliseconds")


def first_line(text: str, characters: int) -> str:
    """Of a text whose beginning is all there is room for."""
    line, _, rest = text.strip().partition("\n")
    return f"{line[: characters - 1]}…" if rest or len(line) > characters else line

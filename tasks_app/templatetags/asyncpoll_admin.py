"""How values look in templates: as in the admin's lists."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template
from django.utils import formats
from django.utils.safestring import SafeString

from tasks_app.admin import display

register = template.Library()


@register.filter
def as_duration(length: timedelta | float | None) -> str:
    """A length of time, given as such or in seconds."""
    if length is None:
        return display.NOTHING
    return display.duration(length if isinstance(length, timedelta) else timedelta(seconds=length))


@register.filter
def as_instant(at: datetime | None) -> str:
    """A time, to the millisecond."""
    return display.instant(at)


@register.filter
def thousands(number: int) -> str:
    """A number, its digits grouped as the reader's language does it."""
    return formats.number_format(number, force_grouping=True)


@register.simple_tag
def badge(word: str, tone: str) -> SafeString:
    """A coloured word."""
    return display.badge(word, tone)

"""Colours of the admin can be told from their ground, in its light and in its dark theme."""

from __future__ import annotations

import re
from pathlib import Path

_CSS = Path(__file__).resolve().parents[2] / "tasks_app" / "static" / "tasks_app" / "admin.css"
_LIGHT, _DARK, _WHITE = (
    "#ffffff",
    "#121212",
    "#ffffff",
)  # the grounds of Django's themes; a badge's word


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_words_on_badges_have_a_contrast_of_four_and_a_half() -> None:
    """White, on the ground of each state."""
    grounds = re.findall(r"background: (#[0-9a-f]{6});", _CSS.read_text())
    assert len(grounds) == 6
    assert min(contrast(_WHITE, ground) for ground in grounds) >= 4.5


def test_lines_of_charts_have_it_as_well() -> None:
    """In either theme: figures of failures have one of their colours."""
    css = _CSS.read_text()
    light, media, dark = re.findall(r"\{([^{}]*--asyncpoll-ok[^{}]*)\}", css)
    for theme, ground in ((light, _LIGHT), (media, _DARK), (dark, _DARK)):
        colours = re.findall(r"--asyncpoll-\w+: (#[0-9a-f]{6});", theme)
        assert len(colours) == 6
        assert min(contrast(colour, ground) for colour in colours) >= 4.5
    assert sorted(media.split()) == sorted(dark.split())

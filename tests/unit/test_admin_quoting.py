"""What texts quote of sensitive arguments is taken out of them."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.admin.quoting import Quotes, _quotes
from tasks_app.redaction import HIDDEN

SECRET = "correct horse battery staple"


def hidden(text: str, *values: object, is_cut: bool = False) -> str:
    """`text` without what a task was given."""
    return _quotes([json.dumps(value) for value in values]).hide(text, is_cut=is_cut)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no such user: {}", "hunter2"),
        ("KeyError('{}')", 'it\'s "quoted"\n'),
        ("https://example.org/?key={}&x=1", "a b/c&d"),
        ("card {} was refused", {"number": "4111111111111111", "month": 12}),
        ("pin {}", [123456]),
        ("{} twice {}", SECRET),
    ],
)
def test_a_value_is_found_however_it_is_written(text: str, value: object) -> None:
    """As itself, as Python and JSON show it, in an address; also inside of lists and objects."""
    leaf = value
    while isinstance(leaf, dict | list):
        leaf = next(iter(leaf.values() if isinstance(leaf, dict) else leaf))
    for form in {str(leaf), repr(str(leaf))[1:-1], json.dumps(leaf).strip('"'), quote(str(leaf))}:
        assert hidden(text.format(form, form), value) == text.format(HIDDEN, HIDDEN)


def test_a_message_that_shortens_a_value_does_not_give_it_away() -> None:
    """Whoever quotes a long value keeps its beginning, its end, or both."""
    value = SECRET * 3
    assert hidden(f"is '{value[:20]}...{value[-20:]}' long", value) == (
        f"is '{HIDDEN}...{HIDDEN}' long"
    )


def test_a_text_that_is_cut_does_not_end_in_the_beginning_of_a_value() -> None:
    """However little of it there is; a whole text may end as it likes."""
    for length in range(1, len(SECRET)):
        assert hidden(f"no {SECRET[:length]}", SECRET, is_cut=True) == f"no {HIDDEN}"
    assert hidden(f"no {SECRET[:5]}", SECRET) == f"no {SECRET[:5]}"


def test_what_is_short_is_left_in_texts() -> None:
    """Taking out each "1" would leave nothing."""
    assert hidden("1 of 123", "1", 12, True, None) == "1 of 123"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps("x" * 70_000),
        "[" * 9_000 + "]" * 9_000,
        json.dumps([*map(str, range(1000, 1200))]),
    ],
)
def test_what_can_not_be_looked_for_hides_the_whole_text(text: str) -> None:
    """Too long, too deep for some Pythons, too many."""
    assert _quotes([text, '"anything"']).hide("anything") == HIDDEN
    assert _quotes([text]).hide("") == ""
    assert "anything" not in _quotes([text, '"anything"']).hide_json('{"a": "anything"}')


def test_json_stays_json() -> None:
    """Texts lose the value, and a number becomes a text."""
    shown = _quotes(['"hunter2"', "123456"]).hide_json(
        '{"a": ["is hunter2", 123456, 1234567], "hunter2": null}'
    )
    assert json.loads(shown) == {"a": [f"is {HIDDEN}", HIDDEN, 1234567], HIDDEN: None}


def test_json_that_is_cut_does_not_end_in_the_beginning_of_a_value() -> None:
    """Within its last text only."""
    assert _quotes(['"hunter2"']).hide_json('{"h": "hunt', is_cut=True) == f'{{"h": "{HIDDEN}'


@given(st.text(min_size=4), st.text(), st.text())
def test_no_text_keeps_a_value(value: str, before: str, after: str) -> None:
    """Whatever stands around it."""
    quotes = _quotes([json.dumps(value)])
    assert value in HIDDEN or value not in quotes.hide(before + value + after).replace(HIDDEN, "")
    whole = json.dumps([before, value, after], ensure_ascii=False)
    assert value not in json.loads(quotes.hide_json(whole)) or value in HIDDEN
    assert Quotes().hide(before) == before

"""What messages, errors and results quote of sensitive arguments: taken out before anybody sees it.

Nobody knows where a task writes what it was given: an exception names the value that it choked on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from urllib.parse import quote, quote_plus
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast, Left

from tasks_app import conf
from tasks_app.admin.jsonparts import PART
from tasks_app.admin.redacting import sensitive
from tasks_app.models import Task
from tasks_app.redaction import HIDDEN, texts_in

# Shorter values are hidden as arguments only: taking each "1" out of a text would leave nothing of it.
_SHORTEST: Final = 4
# So many characters of a long value's beginning or end give it away, where a message has shortened it.
_PIECE: Final = 12
# A value that is longer as JSON text is not looked for; the texts of its task are hidden altogether.
_LONGEST: Final = 65_536
_MOST_VALUES: Final = 100


@dataclass(frozen=True, slots=True)
class Quotes:
    """The values to take out of one task's texts, in each way they may be written, the longest first.

    `everything`: they are not known, or too many to look for.
    """

    values: Sequence[str] = ()
    everything: bool = False

    def hide(self, text: str, *, is_cut: bool = False) -> str:
        """`text` without them; one that `is_cut` may end in the beginning of one."""
        if self.everything and text:
            return HIDDEN
        for value in self.values:
            text = _without(text, value)
            if is_cut:
                text = _without_beginning(text, value)
        return text

    def hide_json(self, text: str, *, is_cut: bool = False) -> str:
        """The same of JSON text, which stays JSON."""
        if self.everything and text:
            return f'"{HIDDEN}"'
        if not self.values:
            return text
        numbers = frozenset(self.values)

        def hide(found: re.Match[str]) -> str:
            part = found[0]
            if not part.startswith('"'):
                return f'"{HIDDEN}"' if part in numbers else part
            return self.hide(part, is_cut=is_cut and found.end() == len(text))

        return PART.sub(hide, text)


def quotes_of(names: Mapping[UUID, str]) -> dict[UUID, Quotes]:
    """What to take out of the texts of each of these tasks, given with their types."""
    found = dict.fromkeys(names, Quotes())
    for name, ids in groupby(sorted(names, key=names.__getitem__), key=names.__getitem__):
        if sensitive(name).names:
            found |= _of_type(name, list(ids))
    return found


def _of_type(name: str, ids: Sequence[UUID]) -> dict[UUID, Quotes]:
    """A task that is gone took its arguments along, and left what others say of it."""
    texts = [Left(Cast(each, TextField()), _LONGEST + 1) for each in sensitive(name).values()]
    rows = Task.objects.using(conf.current().DATABASE).filter(pk__in=ids, name=name).order_by()
    found = {pk: _quotes(given) for pk, *given in rows.values_list("pk", *texts)}
    return {each: found.get(each, Quotes(everything=True)) for each in ids}


def _quotes(texts: Sequence[str | None]) -> Quotes:
    given = [text for text in texts if text is not None]
    if any(len(text) > _LONGEST for text in given):
        return Quotes(everything=True)
    try:
        values = [json.loads(text, parse_int=str, parse_float=str) for text in given]
    except RecursionError:
        return Quotes(everything=True)
    leaves = set(texts_in(values))
    if len(leaves) > _MOST_VALUES:
        return Quotes(everything=True)
    written = {form for leaf in leaves for form in _forms(leaf) if len(form) >= _SHORTEST}
    return Quotes(sorted(written, key=len, reverse=True))


def _forms(text: str) -> Iterator[str]:
    """As itself, in JSON, as Python shows it, and in an address."""
    yield text
    yield text.strip()
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield json.dumps(text)[1:-1]
    yield repr(text)[1:-1]
    yield quote(text)
    yield quote(text, safe="")
    yield quote_plus(text)


def _without(text: str, value: str) -> str:
    text = text.replace(value, HIDDEN)
    if len(value) < 2 * _PIECE:
        return text
    return _without_end(_without_start(text, value), value)


def _without_start(text: str, value: str) -> str:
    """Without what begins as `value` does, however far."""
    parts, begin = [], 0
    while (at := text.find(value[:_PIECE], begin)) >= 0:
        parts += [text[begin:at], HIDDEN]
        begin = at + _PIECE
        while text[begin : begin + 1] and text[begin] == value[begin - at : begin - at + 1]:
            begin += 1
    return "".join([*parts, text[begin:]])


def _without_end(text: str, value: str) -> str:
    """Without what ends as `value` does: the same, backwards."""
    return _without_start(text[::-1], value[::-1])[::-1].replace(HIDDEN[::-1], HIDDEN)


def _without_beginning(text: str, value: str) -> str:
    for length in range(min(len(value), len(text)), 0, -1):
        if text.endswith(value[:length]):
            return text[:-length] + HIDDEN
    return text

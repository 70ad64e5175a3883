"""The large columns of one task, cut to a readable size by the database, so that a page never loads all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Func, IntegerField, TextField
from django.db.models.functions import Cast, Left

from tasks_app import conf
from tasks_app.admin.jsonparts import readable
from tasks_app.admin.quoting import Quotes, quotes_of
from tasks_app.admin.redacting import Sensitive, sensitive
from tasks_app.models import Task

# About 400 lines: what somebody reads on a page. More belongs into a file.
SHOWN_CHARACTERS = 20_000

_JSON = ("result", "args", "kwargs")
_ARGUMENTS = ("args", "kwargs")
_NOTHING = ("[]", "{}")
# In the order in which they are looked at: what went wrong, what came out, what went in.
_TITLES = {
    "error_message": "Error",
    "traceback": "Traceback",
    "result": "Result",
    "args": "Arguments",
    "kwargs": "Keyword arguments",
}


@dataclass(frozen=True, slots=True)
class Document:
    """A value as text. `size_bytes` is that of the whole, `is_cut` says that `text` is only its beginning."""

    name: str
    title: str
    text: str
    size_bytes: int
    is_cut: bool

    @property
    def note(self) -> str:
        """What is missing, or nothing."""
        return (
            f"Only the first {SHOWN_CHARACTERS:,} characters of {self.size_bytes:,} bytes."
            if self.is_cut
            else ""
        )


def documents(task_id: UUID, task_name: str, quotes: Quotes) -> list[Document]:
    """What was given to the task of that type and what came of it; empty if the task is gone."""
    secret = sensitive(task_name)
    columns = {column: value for name in _TITLES for column, value in _columns(name, secret)}
    rows = Task.objects.using(conf.current().DATABASE).filter(pk=task_id).order_by()
    row: Mapping[str, Any] | None = rows.values("error_type", **columns).first()
    return [] if row is None else [*_shown(row, quotes)]


def whole(task_id: UUID, name: str) -> str | None:
    """All of one of them, as text; None where there is none of that name."""
    if name not in _TITLES:
        return None
    rows = Task.objects.using(conf.current().DATABASE).filter(pk=task_id).order_by()
    task_name = rows.values_list("name", flat=True).first()
    if task_name is None:
        return None
    as_text = Cast(sensitive(task_name).expression(name), TextField())
    text: str | None = rows.values_list(as_text, flat=True).first()
    if not text:
        return None
    quotes = quotes_of({task_id: task_name})[task_id]
    return quotes.hide_json(text) if is_json(name) else quotes.hide(text)


def is_json(name: str) -> bool:
    """Or else plain text."""
    return name in _JSON


def _columns(name: str, secret: Sensitive) -> Iterator[tuple[str, Any]]:
    as_text = Cast(secret.expression(name), TextField())
    yield f"{name}_head", Left(as_text, SHOWN_CHARACTERS + 1)
    yield f"{name}_size", Func(as_text, function="octet_length", output_field=IntegerField())


def _shown(row: Mapping[str, Any], quotes: Quotes) -> Iterator[Document]:
    for name, title in _TITLES.items():
        head: str | None = row[f"{name}_head"]
        if name == "error_message" and row["error_type"]:
            head = f"{row['error_type']}: {head}"
        if not head or (name in _ARGUMENTS and head in _NOTHING):
            continue
        is_cut = len(head) > SHOWN_CHARACTERS
        text = head[:SHOWN_CHARACTERS]
        yield Document(
            name=name,
            title=title,
            text=readable(quotes.hide_json(text, is_cut=is_cut))
            if name in _JSON
            else quotes.hide(text, is_cut=is_cut),
            size_bytes=row[f"{name}_size"],
            is_cut=is_cut,
        )

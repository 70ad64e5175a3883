"""Statements have a home: a file each, a promise in its first line, and one verb that makes a call of it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks_app.store import call

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tasks_app" / "store" / "sql").glob("*.sql"))
STATEMENT = re.compile(
    r"\s*(SELECT|INSERT INTO|UPDATE \w+|DELETE FROM|WITH \w+ AS|SET \w+|NOTIFY|LOCK|TRUNCATE|VACUUM|ANALYZE)\s"
)


def texts() -> Iterator[tuple[Path, str]]:
    """Every string in the code that is not a docstring, and not in a migration."""
    for path in [*(ROOT / "asyncpoll").rglob("*.py"), *(ROOT / "tasks_app").rglob("*.py")]:
        if "migrations" in path.parts:
            continue
        tree = ast.parse(path.read_text())
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and id(node) not in prose:
                yield path, node.value


def test_no_statement_is_written_elsewhere() -> None:
    """But for LISTEN, which takes no parameter, in the listener."""
    assert [(str(path), text) for path, text in texts() if STATEMENT.match(text)] == []


def test_every_file_begins_with_its_promise() -> None:
    """Or it could not be read."""
    for file in FILES:
        assert call.text(file.stem).strip(), file


def test_every_file_is_the_statement_of_one_verb() -> None:
    """None is left over, and no other function runs it."""
    made: Counter[str] = Counter()
    for path in (ROOT / "tasks_app" / "store").glob("*.py"):
        made.update(re.findall(r"\bCall\(\s*\"(\w+)\"", path.read_text()))
    assert made == Counter(file.stem for file in FILES)


def test_a_part_that_has_nothing_to_do_is_left_out_of_its_statement() -> None:
    """With its parameters; what stands around it stays."""
    whole, plain = call.text("commit"), call.text("commit", ("steps",))

    assert "tasks_app_steprecord" in whole and "%(steps)s" in whole
    assert "tasks_app_steprecord" not in plain and "%(steps)s" not in plain
    assert set(plain.splitlines()) < set(whole.splitlines())
    assert "tasks_app_taskevent" in plain


def test_a_part_that_is_not_there_is_refused() -> None:
    """A misspelt name would leave the part in for ever."""
    with pytest.raises(
        ValueError, match=r"commit\.sql has no part 'stepps'; one stands between '--\{ stepps'"
    ):
        call.text("commit", ("stepps",))

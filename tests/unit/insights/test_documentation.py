"""docs/planning.md shows what the command prints."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from asyncpoll.cli import plan

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/planning.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r"^    \$ asyncpoll (.+)\n((?:(?!    \$ )(?:    .*)?\n)+)", TEXT, re.MULTILINE
)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_is_what_the_command_prints(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of it."""
    monkeypatch.chdir(ROOT)
    parser = ArgumentParser()
    plan.register(parser.add_subparsers())
    asked = parser.parse_args(shlex.split(command))
    assert asked.run(asked) == 0
    lines = [line.removeprefix("    ") for line in shown.splitlines()]
    assert capsys.readouterr().out.strip() == "\n".join(lines).strip()


def test_a_polling_file_is_read_as_the_example_reads_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the SDK."""
    parser = ArgumentParser()
    plan.register(parser.add_subparsers())
    arguments = shlex.split(EXAMPLES[0][0])
    monkeypatch.chdir(ROOT)
    written = ["--format", "polling-file", "--output", str(tmp_path / "plan.json")]
    asked = parser.parse_args([*arguments, *written])
    assert asked.run(asked) == 0
    monkeypatch.chdir(tmp_path)
    [example] = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert (names["policy"].lifetime_seconds, names["policy"].hold_seconds) == (60, 25)


def test_there_are_examples_of_all_that_is_computed() -> None:
    """Percentiles, a decision, one by measurements, and whether it pays."""
    assert len(EXAMPLES) == 4

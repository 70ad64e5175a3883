"""What the pages say of files, headings, tests, commands and settings is so."""

from __future__ import annotations

import re
from ast import literal_eval
from dataclasses import fields
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from asyncpoll import settings
from tasks_app import checks
from tasks_app.conf import Conf

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
# Decision 18 is about the tests of others.
OF_OTHERS = {"tests/tasks", "tests/tests.py"}
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may end in."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    shown = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in shown}


def rows(page: str, begin: str) -> list[list[str]]:
    """The cells of the page's table rows whose first cell is a word in backticks that begins so."""
    lines = re.findall(rf"^\| `{begin}.*$", (DOCS / page).read_text(), re.MULTILINE)
    return [re.split(r" *(?<!\\)\| *", line.strip("| ")) for line in lines]


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading that it has."""
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        name, _, heading = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        assert not heading or heading in anchors(file), target


@every_page
def test_files_that_are_named_are_there(page: Path) -> None:
    """From the top, or from tasks_app/, as docs/how-it-works.md says."""
    for name in re.findall(r"`([\w.-]+/[\w./-]+\.(?:py|sql|js|mjs|ts))`", page.read_text()):
        there = [(top / name).exists() for top in (ROOT, ROOT / "tasks_app", DOCS)]
        is_example = name.startswith(("shop/", "mysite/", "proj/"))
        assert any(there) or is_example or name in OF_OTHERS, name


@every_page
def test_what_examples_import_from_the_readers_project_is_shown(page: Path) -> None:
    """Or nobody could try them."""
    text = page.read_text()
    for module, names in re.findall(
        r"^from (?:shop|mysite)\.(\w+) import (.+)$", text, re.MULTILINE
    ):
        shown = "".join(
            re.findall(rf"^# \w+/{module}\.py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        )
        for name in names.split(", "):
            assert re.search(rf"^(?:async )?(?:def|class) {name}\b", shown, re.MULTILINE), name


def test_tests_that_are_named_are_there() -> None:
    """Who reads a rule can look at the test that shows it."""
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text())}
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named, "no page names a test"
    assert {name for name in named if f"def {name}(" not in sources} == set()


@every_page
def test_commands_that_are_named_are_there(page: Path) -> None:
    """Whatever follows `manage.py`."""
    named = set(re.findall(r"manage\.py ([a-z]+)\b", page.read_text()))
    assert named <= get_commands().keys(), named


def test_every_setting_is_described_with_its_default() -> None:
    """No other, and in the order in which they are declared."""
    described = {
        name.strip("`"): default.strip("`") for name, default, _ in rows("tasks.md", "[A-Z_]+` ")
    }
    said = {name: default for name, default in described.items() if name in Conf.__slots__}
    assert list(said) == [field.name for field in fields(Conf)]
    defaults = {field.name: getattr(Conf(), field.name) for field in fields(Conf)}
    for name, default in said.items():
        value = literal_eval(default)
        assert (tuple(value) if isinstance(value, list) else value) == defaults[name], name


def test_every_variable_of_the_environment_is_described() -> None:
    """On the page and at the top of the settings."""
    cells = [cell for cell, *_ in rows("serving.md", "[A-Z]+_")]
    described = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert set(re.findall(r"^(\w+_\w+)\b", settings.__doc__ or "", re.MULTILINE)) <= described
    assert described == set(
        re.findall(r"\b(?:DATABASE|LISTEN|CHANNEL|DJANGO|ASYNCPOLL)_\w+", settings.__doc__ or "")
    )


def test_every_check_is_described() -> None:
    """By its id."""
    source = Path(checks.__file__).read_text()
    described = {name.strip("`") for name, *_ in rows("tasks.md", "tasks_app[.]")}
    assert described == set(re.findall(r"tasks_app\.[EW]\d{3}", source))


def test_the_grace_is_thirty_seconds_if_it_is_not_given() -> None:
    """As the help, and the units for systemd, suppose."""
    parser = load_command_class("tasks_app", "runworker").create_parser("manage.py", "runworker")
    assert parser.parse_args([]).grace == 30.0


def test_the_example_worker_has_at_most_sixty_lines_of_code() -> None:
    """Blank lines and comments are not counted."""
    lines = map(str.strip, (DOCS / "examples" / "worker.mjs").read_text().splitlines())
    assert 0 < sum(bool(line) and not line.startswith("//") for line in lines) <= 60

"""Processes and commands on a database that nobody has migrated."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.acceptance.processes import said
from tests.databases import created
from tests.support import free_port

REMEDY = "migrations of tasks_app, from 0001_initial on; run manage.py migrate."
PLACE = "127.0.0.1"
COMMANDS = {
    "serve": ["manage.py", "serve", "--port"],
    "serve in several processes": ["manage.py", "serve", "--processes", "2", "--port"],
    "uvicorn": ["-m", "uvicorn", "asyncpoll.asgi:application", "--port"],
    "runworker": ["manage.py", "runworker"],
    "several workers": ["manage.py", "runworker", "--processes", "2"],
    "createtoken": ["manage.py", "createtoken", "--owner", "me"],
    "revoketoken": ["manage.py", "revoketoken", "0123456789abcdef"],
    "prunetasks": ["manage.py", "prunetasks"],
}


@pytest.fixture
def bare_url() -> Iterator[str]:
    """A database without tables."""
    with created(os.environ["DATABASE_URL"]) as url:
        yield url


@pytest.mark.parametrize("name", COMMANDS)
def test_a_database_that_is_not_migrated_is_one_sentence_with_the_remedy(
    name: str, bare_url: str
) -> None:
    """And an exit code that a supervisor sees; nothing is served or tried again and again."""
    command = COMMANDS[name]
    port = [str(free_port())] if command[-1] == "--port" else []
    code, output = said([*command, *port], bare_url)
    assert code != 0, output
    assert REMEDY in output
    assert "Traceback" not in output


@pytest.mark.parametrize("name", ["createtoken", "prunetasks"])
def test_a_command_without_its_database_is_one_sentence(name: str) -> None:
    """With the reason."""
    url = f"postgresql://me@{PLACE}:{free_port()}/tasks"
    code, output = said(COMMANDS[name], url)
    assert code == 1
    assert output.startswith("CommandError: The database can't be reached: connection failed:")
    assert "Traceback" not in output

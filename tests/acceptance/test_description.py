"""The API is what its description says: a program that knows nothing else finds no fault with it."""

from __future__ import annotations

import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from tasks_app.api.openapi.operations import OPERATIONS
from tests.acceptance.processes import new_token, server
from tests.programs import program

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.described_settings"}
EXAMPLES = 40
SEED = 20261130
SCOPES = "submit,read,cancel,notify,claim:*"


@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(database_url: str, tmp_path: Path) -> None:
    """Every operation: valid requests are taken, invalid ones refused, and every answer is as described."""
    token = new_token(database_url, "--owner", "described", "--scopes", SCOPES, **SETTINGS)
    with server("daphne", database_url, **SETTINGS) as (port, _):
        run = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "schemathesis.cli",
                    "--config-file",
                    str(CONFIGURATION),
                    "run",
                ),
                f"http://127.0.0.1:{port}/api/v1/openapi.json",
                *("--header", f"Authorization: Bearer {token}"),
                *("--max-examples", str(EXAMPLES), "--seed", str(SEED), "--no-color"),
                *("--generation-database", "none", "--continue-on-failure"),
                *("--generation-with-security-parameters", "false"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr


def test_the_docs_page_shows_every_operation_within_its_policy(
    database_url: str, tmp_path: Path
) -> None:
    """In a browser: drawn by our own copy of the library, with nothing refused and nothing fetched from elsewhere."""
    browser = program("chromium")
    with server("daphne", database_url) as (port, _):
        shown = subprocess.run(
            [
                *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
                *(f"--user-data-dir={tmp_path}", "--virtual-time-budget=15000"),
                # Every other host would be one that can't be found.
                *("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",),
                *("--enable-logging=stderr", f"http://127.0.0.1:{port}/api/v1/docs"),
            ],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
    for operation in OPERATIONS:
        assert operation.summary in unescape(shown.stdout)
    assert "CONSOLE" not in shown.stderr, shown.stderr

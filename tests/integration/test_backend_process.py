"""Django's Tasks framework from process to process: one enqueues, a worker runs, another asks for the result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.acceptance.processes import ROOT, started
from tests.support import eventually

SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.framework_settings"}
ENQUEUE = """
import asyncio, json
from tests import framework_tasks as t
due = t.echo.enqueue("sync"), asyncio.run(t.aecho.aenqueue("async")), t.fail.enqueue("broken")
print(json.dumps([result.id for result in due]))
"""
ASK = """
import json, sys
from tests import framework_tasks as t
results = [task.get_result(id) for task, id in zip((t.echo, t.aecho, t.fail), json.loads({ids!r}))]
print(json.dumps([[result.status, result._return_value, result.attempts] for result in results]))
"""


def python(code: str, database_url: str) -> Any:
    """What a script of the project prints, as JSON."""
    script = f"import django; django.setup()\n{code}"
    environment = {**os.environ, **SETTINGS, "DATABASE_URL": database_url}
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_what_one_process_enqueues_a_worker_runs_and_a_third_process_reads(database_url):
    """The worker imports the functions when it first sees them: no module of theirs is listed anywhere."""
    ids = json.dumps(python(ENQUEUE, database_url))
    with started(["manage.py", "runworker"], database_url, **SETTINGS):

        def all_over() -> Any:
            results = python(ASK.format(ids=ids), database_url)
            return results if all(row[0] in ("SUCCESSFUL", "FAILED") for row in results) else None

        assert eventually(all_over) == [
            ["SUCCESSFUL", [["sync"], {}], 1],
            ["SUCCESSFUL", [["async"], {}], 1],
            ["FAILED", None, 1],
        ]


def test_the_checks_of_such_a_project_pass(database_url):
    """The framework asks each backend for its own."""
    environment = {**os.environ, **SETTINGS, "DATABASE_URL": database_url}
    checked = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr

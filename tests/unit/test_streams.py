"""A process whose standard streams were closed for it works like any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.places import newcomers_environment

PROJECT = Path(__file__).resolve().parents[2]
STARTED = """
import os, sys, manage
manage.main(["manage.py", "check"])
print(sys.stdin.read(), "to nobody", file=sys.stderr)
print(os.open(os.devnull, os.O_RDONLY) > 2, os.get_inheritable(0), os.get_inheritable(2))
"""


def test_closed_streams_are_opened_on_nothing(tmp_path: Path) -> None:
    """Nothing else gets their numbers, children inherit them, and logging finds them."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" <&- 2>&-', sys.executable, STARTED],
        cwd=PROJECT,
        env=newcomers_environment(ASYNCPOLL_DATA_DIR=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["True True True"])

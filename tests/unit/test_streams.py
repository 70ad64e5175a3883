"""A process whose standard streams were closed for it, or lead nowhere, works like any other."""

from __future__ import annotations

import os
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


def prints(stderr: int) -> int:
    """The exit code of what prints 100,000 lines to `stderr`; 141: that was refused."""
    script = """
import sys
from asyncpoll.streams import lose_what_stderr_cannot_take
lose_what_stderr_cannot_take()
try:
    for _ in range(100_000):
        print("to nobody", file=sys.stderr)
except BrokenPipeError:
    sys.exit(141)
"""
    return subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT, stderr=stderr, check=False
    ).returncode


def test_a_reader_of_stderr_that_leaves_is_told_once() -> None:
    """And the interpreter's end adds no failure of its own."""
    reader, writer = os.pipe()
    os.close(reader)
    assert prints(writer) == 141
    os.close(writer)


def test_a_full_pipe_that_does_not_block_loses_what_it_does_not_take() -> None:
    """Whoever made it so may share it, as ssh does."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    assert prints(writer) == 0
    os.close(reader)
    os.close(writer)

"""The benchmarks of what is looked at, at their smallest: they fill a database, ask, and judge what they saw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.installed import ROOT

# One round, since what is shown here is that it runs; both in one process, which imports Django once.
QUICKLY = """
import sys
from bench.__main__ import main
from bench.insight import command as insight
from bench.lists import command as lists
insight._ROUNDS = lists._ROUNDS = 1
insight._WARM_UPS = lists._WARM_UPS = 0
*_, folder = sys.argv
for name in ("insight", "lists"):
    if code := main([name, "--tasks", "2000", "--json", f"{folder}/{name}"]):
        sys.exit(code)
"""


def test_insight_and_lists_judge_all_that_they_have_asked_for(tmp_path: Path) -> None:
    """A page that is refused, a type that is missing, or a statement that fails would end them."""
    done = subprocess.run(
        [sys.executable, "-c", QUICKLY, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in ("insight", "lists"):
        report = json.loads((tmp_path / name).read_text())
        [figures] = report["figures"]
        judged = [aim["aim"].removesuffix(", ms") for aim in report["aims"]]
        assert figures["tasks"] == 2000 and len(judged) > 1
        assert judged == list(figures.get("pages", ("one type", "all types")))
        for aim in report["aims"]:
            assert f"| {aim['aim']} ≤ {aim['limit']:g} | 2,000 |" in done.stdout
            assert aim["value"] > 0

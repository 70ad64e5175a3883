"""asyncpoll as somebody installs it who only waits: the built wheel, without extras, in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def wheel(directory: Path) -> Path:
    """Build the wheel, of a copy: a build leaves files where the sources are."""
    source = directory / "source"
    for package in ("asyncpoll", "tasks_app"):
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in (ROOT / "pyproject.toml", ROOT / "README.md", *ROOT.glob("requirements*.txt")):
        shutil.copy(file, source)
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory)]
    subprocess.run([*_PIP, *build, str(source)], check=True)
    (built,) = directory.glob("*.whl")
    return built


def environment(directory: Path, built: Path) -> Path:
    """A fresh environment with the wheel and what it asks for; gives its directory of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    programs = directory / "bin"
    python = str(programs / "python")
    subprocess.run([*_PIP, "--python", python, "install", str(built)], check=True)
    return programs

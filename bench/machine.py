"""The machine that measures: which core does what, and what a reader has to know about it."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bench.errors import BenchError


@dataclass(frozen=True, slots=True)
class Cores:
    """The server has a core to itself; load generator, committer and Postgres share the other."""

    server: int
    load: int

    @property
    def are_apart(self) -> bool:
        """False on a machine with a single core, where figures are worth little."""
        return self.server != self.load


def choose_cores() -> Cores:
    """The first two cores that this process may use. Raises BenchError where processes can't be pinned."""
    if not hasattr(os, "sched_setaffinity"):
        raise BenchError(f"Processes can't be pinned to cores on {sys.platform}; measure on Linux.")
    cores = sorted(os.sched_getaffinity(0))
    return Cores(cores[0], cores[-1] if len(cores) < 2 else cores[1])


def pin(pid: int, core: int) -> None:
    """Keep a process, and whatever it starts from now on, on one core. 0 is this process."""
    os.sched_setaffinity(pid, {core})


def raise_open_files(wanted: int) -> None:
    """Let this process and its children open `wanted` files each. Raises BenchError if that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise BenchError(
            f"{wanted} open files are needed and {hard} are allowed; raise the limit (ulimit -Hn) or hold fewer."
        )
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def describe(packages: Iterable[str]) -> str:
    """One line: processor, cores, system, Python and the versions of `packages` that are installed."""
    parts = [
        f"{_processor()} × {os.cpu_count()}",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        *(f"{name} {version}" for name in packages if (version := _version(name))),
    ]
    return ", ".join(parts)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()

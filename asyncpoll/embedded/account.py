"""Who Postgres runs as. It refuses root, so root lends it an account that exists already; none is created."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asyncpoll.embedded.errors import EmbeddedError

# Nothing of the caller's: PGOPTIONS and friends would reach the server. LC_ALL because macOS needs it set.
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
_UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """A user and its group; `borrowed` when it is another one than ours, which only root can lend."""

    uid: int
    gid: int
    borrowed: bool

    def may_enter(self, directory: Path) -> bool:
        """True if this account can get to `directory`, whatever its parents' modes and access lists say."""
        return self._run(["/bin/sh", "-c", 'cd "$1"', "sh", str(directory)]).returncode == 0

    def run(self, *command: str | Path, stdin: str = "", cwd: Path | str = "/") -> str:
        """Run `command` to its end as this account and return its output. Raises EmbeddedError if it fails."""
        done = self._run([str(word) for word in command], input=stdin, cwd=cwd)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise EmbeddedError(
                f"{Path(command[0]).name} failed with exit code {done.returncode}: "
                f"{' / '.join(said[-3:]) or 'it said nothing'}. Set DATABASE_URL to use a Postgres of your own."
            )
        return done.stdout

    def start(self, *command: str | Path, output: int) -> subprocess.Popen[bytes]:
        """Start `command` as this account, in a session of its own: a Ctrl-C in our terminal is not for it."""
        return subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
            env=_ENVIRONMENT,
            **self._identity(),
        )

    def _run(
        self, command: list[str], input: str = "", cwd: Path | str = "/"
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                command,
                input=input,
                cwd=cwd,
                capture_output=True,
                text=True,
                check=False,
                env=_ENVIRONMENT,
                **self._identity(),
            )
        except OSError as error:
            raise EmbeddedError(
                f"{command[0]} can't be run as user {self.uid}: {error.strerror}. "
                "Set DATABASE_URL to use a Postgres of your own."
            ) from error

    def _identity(self) -> dict[str, Any]:
        if not self.borrowed:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def account_for(cluster: Path | None) -> Account:
    """Say who runs the Postgres of the directory `cluster` (None: of one still to be made).

    That is us; or, when we are root, the cluster's owner, else `postgres` or `nobody`. Raises EmbeddedError.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), borrowed=False)
    if cluster is None:
        return _unprivileged()
    owner = cluster.lstat()
    if owner.st_uid == 0:
        raise EmbeddedError(
            f"{cluster} belongs to root, and Postgres refuses to run as root: "
            "give it back to the user it was made for with chown, or choose another data directory."
        )
    return Account(owner.st_uid, owner.st_gid, borrowed=True)


def _unprivileged() -> Account:
    import pwd  # not on Windows, where this module must still be importable

    for name in _UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, borrowed=True)
    raise EmbeddedError(
        f"Postgres refuses to run as root, and there is no user {' or '.join(_UNPRIVILEGED)} to lend it: "
        "run as another user, or set DATABASE_URL."
    )

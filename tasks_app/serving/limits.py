"""How many requests can be held with the files that this process may open."""

from __future__ import annotations

import contextlib
import resource

# For the listening sockets, database and layer connections, logs, and clients that are not held.
RESERVED_FILES = 512


def raise_open_files(most_held: int) -> int:
    """Raise the soft limit of open files as far as allowed. Returns how many requests can then be held."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, most_held + RESERVED_FILES)
    # Some systems name a hard limit and refuse to grant it; what we had remains.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return holds_within(resource.getrlimit(resource.RLIMIT_NOFILE)[0], most_held)


def holds_within(files: int, most_held: int) -> int:
    """The part of `most_held` that `files` open files allow; half of them where even the reserve is too much."""
    if files == resource.RLIM_INFINITY:
        return most_held
    return max(1, min(most_held, max(files - RESERVED_FILES, files // 2)))


def shortage(allowed: int, most_held: int) -> str | None:
    """One line that says what is short and how to mend it; None if nothing is."""
    if allowed >= most_held:
        return None
    return (
        f"ASYNCPOLL['MAX_HELD'] is {most_held}, but the open-files limit lets this process hold {allowed} requests: "
        f"raise it to {most_held + RESERVED_FILES} (ulimit -n, LimitNOFILE=), or lower MAX_HELD."
    )

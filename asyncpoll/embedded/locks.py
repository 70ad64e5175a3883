"""File locks between processes. The kernel releases them when a process dies, however it dies."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

try:
    import fcntl
except ImportError:  # Windows, which binaries.installed() refuses before a lock is needed
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """A lock on the file `path`, which is created if need be. Raises OSError where it can't be opened or locked.

    As a context manager it is held exclusively.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def share(self) -> None:
        """Wait until nobody holds the lock exclusively, then hold it together with others."""
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def claim(self) -> None:
        """Wait until nobody else holds the lock, then hold it alone."""
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def try_claim(self) -> bool:
        """Hold the lock alone if that is possible at once. On failure a lock that was shared may be lost."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def note(self, text: str) -> None:
        """Replace what the file says; only for whoever holds the lock alone."""
        os.truncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)

    def noted(self) -> str:
        """What the holder noted."""
        return os.pread(self._file, 1024, 0).decode(errors="replace").strip()

    def release(self) -> None:
        """Let others have the lock."""
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock for good."""
        os.close(self._file)

    def __enter__(self) -> FileLock:
        self.claim()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

"""How long a statement waits for a row that another transaction has locked."""

from __future__ import annotations

from typing import Final

# Whoever stores, starts or ends a task is done in milliseconds; what takes longer than this belongs to a process that is
# frozen or cut off, or to somebody at a prompt, and must not take everybody's connections along.
PATIENCE: Final = "1000ms"

"""How late a worker's event loop is: an async task that does not yield holds up all others, and their commits."""

from __future__ import annotations

from tasks_app.events import emit
from tasks_app.lateness import Beats


class WorkerPulse(Beats):
    """Says when it lags. Leases are extended by a thread of their own, and do not suffer."""

    def turned(self) -> None:
        """Say so."""
        emit("worker.lags" if self.lags else "worker.caught_up", lag_seconds=self.late_seconds)

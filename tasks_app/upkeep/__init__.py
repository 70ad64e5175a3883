"""Looks after the table: gives expired leases to others, and lets due tasks in. Safe in any number of processes."""

from tasks_app.upkeep.promotion import Promotion
from tasks_app.upkeep.rescue import Rescue
from tasks_app.upkeep.upkeep import Upkeep

__all__ = ["Promotion", "Rescue", "Upkeep"]

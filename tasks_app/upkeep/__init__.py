"""Looks after the table: gives expired leases to others, lets due tasks in, ticks schedules, deletes what is old, rolls
durations up, tells ends to inboxes and webhooks, does what was asked for all tasks that a filter matches.

Safe in any number of processes. Each kind of work is done by one of them at a time: its statement tries an advisory
lock that ends with its transaction, so that it works through a pooler and a frozen process can't keep it; who does not
get it tries again at the next period.
"""

from tasks_app.upkeep.deliveries import Deliveries
from tasks_app.upkeep.orders import Orders
from tasks_app.upkeep.promotion import Promotion
from tasks_app.upkeep.pruning import Pruned, Pruning, prune_now, pruning
from tasks_app.upkeep.rescue import Rescue
from tasks_app.upkeep.rollups import Rollups
from tasks_app.upkeep.schedules import Schedules
from tasks_app.upkeep.upkeep import Upkeep, start_upkeep, stop_upkeep

__all__ = [
    "Deliveries",
    "Orders",
    "Promotion",
    "Pruned",
    "Pruning",
    "Rescue",
    "Rollups",
    "Schedules",
    "Upkeep",
    "prune_now",
    "pruning",
    "start_upkeep",
    "stop_upkeep",
]

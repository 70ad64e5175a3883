"""The only code that changes a task: one verb, one `.sql` file, one function.

A verb makes a `Call`, which does nothing by itself; `run` executes it on Django's own connection (and so joins the
caller's transaction), `Pool.run` on the process's async pool.
"""

from tasks_app.store.call import Call
from tasks_app.store.rows import (
    ENDINGS,
    Change,
    Claimed,
    Committed,
    Milestone,
    NewTask,
    Snapshot,
    WorkerFacts,
)
from tasks_app.store.verbs import (
    cancel,
    claim,
    commit,
    delete,
    enqueue,
    heartbeat,
    new_epoch,
    notify,
    ping,
    promote,
    read,
    read_result,
    rescue,
    run_again,
    step,
    stop_worker,
)

__all__ = [
    "ENDINGS",
    "Call",
    "Change",
    "Claimed",
    "Committed",
    "Milestone",
    "NewTask",
    "Snapshot",
    "WorkerFacts",
    "cancel",
    "claim",
    "commit",
    "delete",
    "enqueue",
    "heartbeat",
    "new_epoch",
    "notify",
    "ping",
    "promote",
    "read",
    "read_result",
    "rescue",
    "run_again",
    "step",
    "stop_worker",
]

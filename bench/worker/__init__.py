"""How fast tasks are enqueued, picked up and completed, beside other task queues for Python.

One worker process, tasks that do nothing, batches of several sizes. Nothing is pinned: worker, whoever enqueues and
the servers share all cores, in the same way for everybody.

    enqueue     tasks a second that one producer stores, one batch to a call, each call after the other; where
                there is no call for several, one by one
    run         the worker is started on that backlog; from the first task's start to the last one's start
    complete    the same to the moment that the store says of none any more that it waits or runs
    CPU         of the worker's processes meanwhile, by tasks
    pick-up     then, while the worker is idle: one task is enqueued; from before the call to the task's start

A task does nothing but count itself. Ratios compare what asyncpoll completed, with results and history stored and
waiters notified, to what the others ran: they write some ends a little later, and are not charged for that.

    growth      the store's claim and commit of 50 tasks at a time beside ever more finished tasks, in turns, medians
    cancels     running tasks are cancelled one by one; from before the statement to the task's own look at
                current_task().cancelled, which it takes every millisecond
"""

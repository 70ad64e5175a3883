"""What deleting a million finished tasks costs those who use the database meanwhile.

A table of finished tasks with their history, spread over a month; a worker that runs what somebody enqueues, one task
after the other; and pruning, in batches that follow each other without a rest, as `manage.py prunetasks` has them (the
loop in workers and servers rests 0.1 s after each). Every second it stops for a second, so that what it costs is told by
two seconds next to each other, until there is nothing left to delete.

    batch       one transaction of the pruning: its rows stay locked for as long
    enqueue     from before the statement that stores a task to the end of its commit
    done        from the storing of a task to the commit of its result, by the database's clock
"""

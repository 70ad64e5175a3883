"""What a held request costs, and how fast a commit reaches it.

Real servers, each on a core of its own. Load generator, committer and Postgres share the other core.

    CPU per hold   CPU time of the server's processes, from before the first connection to the last request parked, by
                   the number of requests; connections are opened first and the requests sent then, all at once
    memory         growth of the memory that is the server's alone (USS) over the same time
    threads        of the server, while all are held
    wake           5 tasks end every 10 ms; from the moment that their commit returned (in a baseline: the moment that
                   the waiter was told) to the moment that the last byte of an answer was there; one
                   waiter for each task
    storm          everything held ends at once, 500 tasks to a statement (a baseline: all in one request); from before
                   the first commit was sent to the last answer
"""

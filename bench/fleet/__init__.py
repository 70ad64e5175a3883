"""What a fleet of web processes gives its clients, in calm, under load and while something fails.

`manage.py serve --processes N` with wake-ups in memory (each process listens to Postgres) or through Valkey (one does,
for all). Nothing is pinned: processes, clients, Postgres and Valkey share all cores.

    wake      5 tasks end every 10 ms; from the moment that their commit returned to the last byte of the answer
    storm     everything held ends at once, 500 tasks to a statement; from before the first commit was sent to the last
              answer
    drain     SIGTERM with so many held: until the last answer, resets, and answers other than 200 DRAINING
    traffic   1,500 tasks of 30-120 s, one ending and a new one starting 20 times a second, and clients that
                plain    ask for each task once a second, by a route that reads the row each time and nothing else
                short    ask for each task once a second (max_hold_seconds=0, what memory knows is answered from there)
                each     long-poll each task (25 s)
                hundred  long-poll 100 tasks in one request (25 s), and linger
              requests and statements in a window of the steady state, by the minute where that is said, and how long
              after a task's end was committed its client knew. Statements are what the role of the web processes ran
              (pg_stat_statements): reads of tasks, and the link's own each second. The worker's are not among them.
    faults    the scenarios of tests/fleet: commits and waiters at three processes while something breaks; from the
              moment that it is over (or happened, where it can't end) until everybody hears every commit at once, and
              the longest that anybody waited meanwhile
"""

"""What asyncpoll is compared with, each written as its own documentation would have it.

Those of `holds` speak the same paths:

    POST /tasks    {"ids": […]}    these tasks run from now on, at version 2
    POST /finish   {"ids": […]}    they are over; answers {"at": […]}: when each waiter was told, by the monotonic clock
    GET  /api/v1/tasks/{id}/long_poll?client_known_version=2&max_hold_seconds=25
    GET  /readyz   {"held": N}

Those of `worker` are command lines with the same verbs:

    install        create what the queue needs in the database at DATABASE_URL
    produce        (without a verb where there is no other) enqueue tasks as `bench.producing` asks for them
    work BATCH     be a worker that takes so many tasks at once; each task counts itself with `bench.tally`
"""

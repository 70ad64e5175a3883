-- place_order: an action over all that a filter matches is to be done, in batches, to no more tasks than were counted.
INSERT INTO tasks_app_order (
    id, verb, owner, status, name, queue, "cursor", counted, done, skipped, placed_by, placed_at, note
)
VALUES (
    %(id)s, %(verb)s, %(owner)s, %(status)s, %(name)s, %(queue)s, %(newest)s, %(counted)s, 0, 0,
    %(placed_by)s, clock_timestamp(), ''
)

-- record_order: how far an order has come, and whether it is over and why.
UPDATE tasks_app_order SET
    "cursor" = %(cursor)s, done = done + %(done)s, skipped = skipped + %(skipped)s, note = %(note)s,
    ended_at = CASE WHEN %(ended)s THEN clock_timestamp() END
WHERE id = %(id)s

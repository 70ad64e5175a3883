-- count_sought: how many tasks older than `newest` match, counted up to `most`.
SELECT count(*)::int FROM (
    SELECT 1 FROM tasks_app_task
    WHERE id < %(newest)s
        AND owner = coalesce(%(owner)s::text, owner) AND status = coalesce(%(status)s::text, status)
        AND name = coalesce(%(name)s::text, name) AND queue = coalesce(%(queue)s::text, queue)
    ORDER BY id DESC LIMIT %(most)s
) AS matching

-- find_committed: those of these changes that are in effect already; each has left its last milestone in the history.
SELECT t.id, t.status, t.version
FROM unnest(%(ids)s::uuid[], %(attempts)s::int[], %(kinds)s::text[], %(afters)s::int[]) AS c(id, attempt, kind, after)
JOIN tasks_app_task t ON t.id = c.id
WHERE EXISTS (
    SELECT FROM tasks_app_taskevent e
    WHERE e.task_id = c.id AND e.version > c.after AND e.attempt = c.attempt
        -- A cancel that was asked for makes an end of what would have been another attempt.
        AND (e.kind = c.kind OR e.kind = 'cancelled')
)

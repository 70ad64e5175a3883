-- count_sought: how many tasks older than `newest` match, counted up to `most`.
SELECT count(*)::int FROM (
    -- Each status but SUCCESS has an index of few tasks; those that wait have two, for what is due and what is not yet.
    SELECT FROM (
        SELECT id, owner, name, queue FROM tasks_app_task
        WHERE %(status)s::text IS DISTINCT FROM 'PENDING' AND (%(status)s::text IS NULL OR status = %(status)s::text)
        UNION ALL
        SELECT id, owner, name, queue FROM tasks_app_task WHERE %(status)s::text = 'PENDING' AND ready
        UNION ALL
        SELECT id, owner, name, queue FROM tasks_app_task
        WHERE %(status)s::text = 'PENDING' AND status = 'PENDING' AND NOT ready
    ) AS of_status
    WHERE id < %(newest)s
        -- Tasks without an owner are in no index by owner.
        AND (coalesce(%(owner)s::text, '') = '' OR owner > '') AND (%(owner)s::text IS NULL OR owner = %(owner)s::text)
        AND (%(name)s::text IS NULL OR name = %(name)s::text) AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
    LIMIT %(most)s
) AS matching

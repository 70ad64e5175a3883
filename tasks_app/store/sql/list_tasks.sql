-- list_tasks: newest first, up to `limit` that match of the `span` tasks next to the cursor; the last of a full span comes along.
SELECT
    id, name, queue, owner, status, version, progress, message, attempt, error_type, error_message,
    stalled, cancel_requested, created_at, started_at, finished_at, NULL, false, matches, nth = %(span)s
FROM (
    SELECT
        *,
        status = 'RUNNING' AND lease_expires_at < clock_timestamp() AS stalled,
        (%(status)s::text IS NULL OR status = %(status)s::text)
            AND (%(name)s::text IS NULL OR name = %(name)s::text)
            AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
            AND (%(owner)s::text IS NULL OR owner = %(owner)s::text) AS matches,
        row_number() OVER (ORDER BY id DESC) AS nth
    FROM (
        SELECT
            id, name, queue, owner, status, version, progress, message, attempt, error_type, error_message,
            lease_expires_at, cancel_requested, created_at, started_at, finished_at
        FROM tasks_app_task
        -- Tasks without an owner are in no index by owner, and are looked for among all.
        WHERE id < %(before)s AND (coalesce(%(owner)s::text, '') = '' OR owner > '' AND owner = %(owner)s::text)
        ORDER BY id DESC
        LIMIT %(span)s
    ) AS nearest
) AS numbered
WHERE matches OR nth = %(span)s
ORDER BY id DESC
LIMIT %(limit)s

-- read_events: what happened to one task after a version, oldest first: at most `limit` versions, and so many bytes of data.
SELECT version, kind, at, attempt, progress, message, data FROM (
    SELECT
        version, kind, at, attempt, progress, message, data::text AS data,
        sum(coalesce(octet_length(data::text), 0)) OVER (ORDER BY version ROWS UNBOUNDED PRECEDING) AS total,
        row_number() OVER (ORDER BY version) AS nth
    FROM (
        SELECT version, kind, at, attempt, progress, message, data
        FROM tasks_app_taskevent
        WHERE task_id = %(id)s AND version > %(after)s
        ORDER BY version
        LIMIT %(limit)s
    ) AS newer
) AS measured
WHERE nth = 1 OR total <= %(bytes)s
ORDER BY version

-- acknowledge: an entry of the owner's is listed no more; asking again changes nothing.
WITH fresh AS (
    UPDATE tasks_app_inboxentry SET acknowledged_at = clock_timestamp()
    WHERE id = %(id)s AND owner = %(owner)s AND acknowledged_at IS NULL
    RETURNING acknowledged_at
)
SELECT acknowledged_at FROM fresh
UNION ALL
SELECT acknowledged_at FROM tasks_app_inboxentry WHERE id = %(id)s AND owner = %(owner)s AND acknowledged_at IS NOT NULL

-- acknowledge: an entry of the owner's is listed no more; asking again changes nothing.
-- One statement of the row as it is, not as it was: who waits here for somebody else's has to see what that one wrote.
UPDATE tasks_app_inboxentry SET acknowledged_at = coalesce(acknowledged_at, clock_timestamp())
WHERE id = %(id)s AND owner = %(owner)s
RETURNING acknowledged_at

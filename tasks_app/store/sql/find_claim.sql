-- find_claim: what was taken under this claim, while it lasts: for the time of a first lease, and as long as it holds a task.
SELECT c.tasks FROM tasks_app_claim c
WHERE c.id = %(claim)s AND (
    c.expires_at > clock_timestamp()
    OR EXISTS (
        SELECT FROM tasks_app_task t
        WHERE t.id IN (SELECT jsonb_array_elements_text(c.tasks)::uuid) AND t.status = 'RUNNING' AND t.worker = c.id
    )
)

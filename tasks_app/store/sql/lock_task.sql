-- lock_task: nobody ends this task, or leaves a claim check for it, until the transaction is over; gives whose it is.
SELECT owner FROM tasks_app_task
-- A transaction of somebody's that has it locked, and does not end, must not take everybody's connections along.
WHERE id = %(id)s
-- Others' are neither locked nor waited for: whoever asks must not learn that they are there.
AND (%(owner)s::text IS NULL OR owner = %(owner)s)
AND set_config('lock_timeout', %(patience)s::text, true) IS NOT NULL
FOR UPDATE

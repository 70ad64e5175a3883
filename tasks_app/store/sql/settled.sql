-- settled: the task as it is now, and whether that is where this attempt wants to leave it.
SELECT
    name, status, version,
    attempt = %(attempt)s AND worker = %(claim)s AND CASE %(status)s::text
        WHEN 'SUCCESS' THEN status = 'SUCCESS' AND result IS NOT DISTINCT FROM %(result)s::jsonb
        WHEN 'CANCELLED' THEN status = 'CANCELLED'
        -- A cancel that was asked for makes an end of what would have been another attempt.
        WHEN 'PENDING' THEN error_type = '' AND (status = 'PENDING' OR status = 'CANCELLED' AND cancel_requested)
        WHEN 'FAILED' THEN
            status IN ('FAILED', 'PENDING', 'CANCELLED')
            AND error_type = %(error_type)s::text AND error_message = %(error_message)s::text
            OR status = 'CANCELLED' AND cancel_requested AND error_type = ''
        ELSE false
    END
FROM tasks_app_task WHERE id = %(id)s

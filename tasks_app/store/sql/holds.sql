-- holds: those of these attempts that hold their tasks, whoever has the rows locked.
SELECT t.id FROM unnest(%(ids)s::uuid[], %(attempts)s::int[]) AS h(id, attempt)
JOIN tasks_app_task t ON t.id = h.id
WHERE t.status = 'RUNNING' AND t.attempt = h.attempt AND t.worker = %(worker)s

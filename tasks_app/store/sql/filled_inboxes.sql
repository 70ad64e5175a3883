-- filled_inboxes: those of some owners whose inboxes hold anything that is not acknowledged.
SELECT owner FROM unnest(%(owners)s::text[]) AS o(owner)
WHERE EXISTS (SELECT FROM tasks_app_inboxentry e WHERE e.owner = o.owner AND e.acknowledged_at IS NULL)

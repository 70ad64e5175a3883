-- prune_workers: worker processes that ended too long ago are gone; one that said nothing for a day has ended, too.
DELETE FROM tasks_app_workerprocess
WHERE coalesce(stopped_at, heartbeat_at + interval '1 day') < clock_timestamp() - make_interval(secs => %(older_than)s)
RETURNING id

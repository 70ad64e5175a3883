"""The end of a task that somebody asked about makes its deliveries due, whichever statement ends it."""

from django.db import migrations

# One function for all: the tasks that nobody asked about never get here, as the trigger looks at their row alone.
NOTICE_ENDS = """
CREATE FUNCTION asyncpoll_task_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tasks_app_delivery SET state = 'DUE', owed_at = clock_timestamp(), due_at = clock_timestamp()
    WHERE task_id = NEW.id AND state = 'WAITING';
    PERFORM pg_notify('asyncpoll_work', 'deliver:');
    RETURN NULL;
END $$;
CREATE TRIGGER asyncpoll_task_ended AFTER UPDATE OF finished_at ON tasks_app_task FOR EACH ROW
WHEN (NEW.awaited AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL)
EXECUTE FUNCTION asyncpoll_task_ended();
"""
IGNORE_ENDS = """
DROP TRIGGER IF EXISTS asyncpoll_task_ended ON tasks_app_task;
DROP FUNCTION IF EXISTS asyncpoll_task_ended();
"""


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0010_message_centre")]
    operations = [migrations.RunSQL(NOTICE_ENDS, IGNORE_ENDS)]

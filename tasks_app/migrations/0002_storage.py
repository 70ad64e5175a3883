"""What Django's schema editor can't say: storage parameters, and the sequence that numbers the bridge's epochs."""

from django.db import migrations

# A task is updated three to a thousand times and then never again: leave room on its page, and vacuum by hundreds of
# dead rows rather than by a fifth of a table that keeps millions of finished ones.
SET_STORAGE = """
ALTER TABLE tasks_app_task SET (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_analyze_threshold = 500
);
ALTER TABLE tasks_app_taskevent SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE SEQUENCE IF NOT EXISTS asyncpoll_epoch;
"""
RESET_STORAGE = """
DROP SEQUENCE IF EXISTS asyncpoll_epoch;
ALTER TABLE tasks_app_taskevent RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
ALTER TABLE tasks_app_task RESET (
    fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay,
    autovacuum_analyze_scale_factor, autovacuum_analyze_threshold
);
"""


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0001_initial")]
    operations = [migrations.RunSQL(SET_STORAGE, RESET_STORAGE)]

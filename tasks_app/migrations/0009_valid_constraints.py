"""The rows from before the two constraints are checked, beside everybody's work: with millions of them it takes a while."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0008_two_constraints")]
    operations = [
        ValidateConstraint("task", "asyncpoll_status_sound"),
        ValidateConstraint("task", "asyncpoll_values_sound"),
    ]

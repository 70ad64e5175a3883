"""From a task to those that run it again. Built beside everybody's work."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("tasks_app", "0015_routes"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                models.F("retried_from"),
                models.F("id"),
                condition=models.Q(("retried_from__isnull", False)),
                name="asyncpoll_retries",
            ),
        ),
    ]

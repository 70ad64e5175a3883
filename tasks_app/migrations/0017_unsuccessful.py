"""For actions on all that did not succeed. Built beside everybody's work."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("tasks_app", "0016_retries"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                models.F("status"),
                models.F("id"),
                condition=models.Q(("status__in", ["FAILED", "CANCELLED"])),
                name="asyncpoll_unsuccessful",
            ),
        ),
    ]

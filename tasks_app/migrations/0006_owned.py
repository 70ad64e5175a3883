"""An owner's tasks, newest first. Built beside everybody's work: with millions of rows it takes a while."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("tasks_app", "0005_tokens"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                models.F("owner"),
                models.F("id"),
                condition=models.Q(("owner__gt", "")),
                name="asyncpoll_owned",
            ),
        ),
    ]

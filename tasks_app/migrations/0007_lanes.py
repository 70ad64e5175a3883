"""The claim index by owner, so that a claim can go round; built beside the old one without stopping anybody's writes."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tasks_app", "0006_owned")]
    operations = [
        AddIndexConcurrently(
            "task",
            models.Index(
                "queue",
                "owner",
                "order_key",
                "id",
                name="asyncpoll_lanes",
                condition=models.Q(ready=True),
            ),
        ),
        RemoveIndexConcurrently("task", "asyncpoll_ready"),
    ]

"""Durations by the hour."""

from django.db import migrations, models

import tasks_app.models.rollup


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0011_ends_are_noticed"),
    ]

    operations = [
        migrations.CreateModel(
            name="RolledHour",
            fields=[
                ("started_at", models.DateTimeField(primary_key=True, serialize=False)),
                ("rolled_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Rollup",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "task",
                        "started_at",
                        "span_seconds",
                        "queue",
                        "outcome",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("task", models.CharField(max_length=200, verbose_name="type")),
                ("started_at", models.DateTimeField()),
                ("span_seconds", models.PositiveIntegerField()),
                ("queue", models.CharField(max_length=200)),
                ("outcome", models.CharField(max_length=9)),
                ("count", models.BigIntegerField()),
                ("ran_bins", tasks_app.models.rollup.SmallIntegers()),
                ("ran_counts", tasks_app.models.rollup.Integers()),
                ("waited_bins", tasks_app.models.rollup.SmallIntegers()),
                ("waited_counts", tasks_app.models.rollup.Integers()),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("span_seconds"),
                        models.F("started_at"),
                        name="asyncpoll_rollup_spans",
                    )
                ],
            },
        ),
    ]

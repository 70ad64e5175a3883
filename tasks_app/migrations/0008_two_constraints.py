"""Two constraints in place of fifteen. What is stored already is checked by the next migration, which stops nobody."""

import datetime

import django.db.models.functions.comparison
import django.db.models.lookups
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tasks_app", "0007_lanes"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="schedule",
            name="asyncpoll_ticks_readable",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_status_known",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_version_from_1",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_priority_bounds",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_progress_bounds",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_ready_is_pending",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_running_is_leased",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_terminal_is_finished",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_result_is_success",
        ),
        migrations.RemoveConstraint(
            model_name="task",
            name="asyncpoll_failures_within",
        ),
        migrations.AlterField(
            model_name="task",
            name="attempt",
            field=models.IntegerField(default=0, help_text="The fence: only a claim adds to it."),
        ),
        migrations.AlterField(
            model_name="task",
            name="failures",
            field=models.IntegerField(
                default=0,
                help_text="Errors, time-outs and expired leases; what max_attempts limits.",
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="max_attempts",
            field=models.SmallIntegerField(default=3),
        ),
        migrations.AlterField(
            model_name="task",
            name="version",
            field=models.IntegerField(default=1),
        ),
        migrations.AlterField(
            model_name="taskevent",
            name="attempt",
            field=models.IntegerField(default=0),
        ),
        migrations.AlterField(
            model_name="taskevent",
            name="version",
            field=models.IntegerField(),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    django.db.models.lookups.GreaterThanOrEqual(
                        django.db.models.functions.comparison.Least("next_tick", "last_tick"),
                        datetime.datetime(1, 1, 1, 0, 0, tzinfo=datetime.UTC),
                    ),
                    django.db.models.lookups.LessThanOrEqual(
                        django.db.models.functions.comparison.Greatest("next_tick", "last_tick"),
                        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.UTC),
                    ),
                ),
                name="asyncpoll_ticks_readable",
            ),
        ),
        AddConstraintNotValid(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("finished_at__isnull", True),
                        ("lease_expires_at__isnull", True),
                        ("result__isnull", True),
                        ("status", "PENDING"),
                    ),
                    models.Q(
                        ("finished_at__isnull", True),
                        ("lease_expires_at__isnull", False),
                        ("ready", False),
                        ("result__isnull", True),
                        ("status", "RUNNING"),
                        ("worker__isnull", False),
                    ),
                    models.Q(
                        ("finished_at__isnull", False),
                        ("lease_expires_at__isnull", True),
                        ("ready", False),
                        ("status", "SUCCESS"),
                    ),
                    models.Q(
                        ("finished_at__isnull", False),
                        ("lease_expires_at__isnull", True),
                        ("ready", False),
                        ("result__isnull", True),
                        ("status__in", ["FAILED", "CANCELLED"]),
                    ),
                    _connector="OR",
                ),
                name="asyncpoll_status_sound",
            ),
        ),
        AddConstraintNotValid(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("failures__gte", 0),
                    ("failures__lte", models.F("attempt")),
                    ("priority__gte", -100),
                    ("priority__lte", 100),
                    ("timeout_seconds__gte", 0),
                    ("timeout_seconds__lte", 1000000000.0),
                    ("version__gte", 1),
                    models.Q(
                        ("progress__isnull", True),
                        models.Q(("progress__gte", 0), ("progress__lte", 1)),
                        _connector="OR",
                    ),
                    django.db.models.lookups.GreaterThanOrEqual(
                        django.db.models.functions.comparison.Least(
                            "run_at", "created_at", "started_at", "finished_at", "lease_expires_at"
                        ),
                        datetime.datetime(1, 1, 1, 0, 0, tzinfo=datetime.UTC),
                    ),
                    django.db.models.lookups.LessThanOrEqual(
                        django.db.models.functions.comparison.Greatest(
                            "run_at", "created_at", "started_at", "finished_at", "lease_expires_at"
                        ),
                        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.UTC),
                    ),
                ),
                name="asyncpoll_values_sound",
            ),
        ),
    ]

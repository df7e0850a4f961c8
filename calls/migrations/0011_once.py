from django.conf import settings
from django.db import migrations, models

import audit.models.entries


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_proofs"),
        ("calls", "0010_freezes"),
        ("registry", "0010_repeats_and_own_tools"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Once",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("call_id", models.UUIDField()),
                ("lasts_s", models.PositiveIntegerField()),
                ("guard", models.BooleanField()),
                ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="call",
            name="unheard_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="call",
            index=models.Index(
                condition=models.Q(
                    ("executed", "unknown"), ("unheard_at__isnull", False), _connector="OR"
                ),
                fields=["tool", "agent", "arguments_digest"],
                name="calls_unheard",
            ),
        ),
        migrations.AddIndex(
            model_name="once",
            index=models.Index(fields=["at"], name="calls_once_at"),
        ),
    ]

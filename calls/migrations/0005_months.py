from django.db import migrations, models

from core.sql_files import in_months, run_file


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0002_months"),
        ("calls", "0004_fingerprint_index"),
    ]

    operations = [
        # A unique index holds in one partition alone: calls_held_alike compares.
        migrations.RemoveConstraint(model_name="call", name="calls_one_held_alike"),
        migrations.AddIndex(
            model_name="call",
            index=models.Index(
                fields=["agent", "tool", "arguments_digest"],
                condition=models.Q(state="held"),
                name="calls_held",
            ),
        ),
        run_file("calls/sql/alike.sql"),
        in_months("calls_call", "id"),
        in_months("calls_result", "call_id"),
    ]

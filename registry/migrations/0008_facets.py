import django.contrib.postgres.indexes
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0007_watch_tags"),
    ]

    operations = [
        migrations.RunSQL(
            "UPDATE registry_listing SET words = lower(words)", migrations.RunSQL.noop
        ),
        migrations.RemoveIndex(
            model_name="tool",
            name="registry_tool_unpublished",
        ),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(fields=["state", "exposed_name"], name="registry_tool_state"),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(fields=["used_on"], name="registry_tool_used"),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["hints"], name="registry_tool_hints"
            ),
        ),
    ]

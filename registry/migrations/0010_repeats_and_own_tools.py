import django.contrib.postgres.fields
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import core.triggers
import registry.models


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0009_search_at_once"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="tool",
            name="configuration",
        ),
        migrations.AddField(
            model_name="tool",
            name="repeats",
            field=models.CharField(
                choices=[
                    ("auto", "Held back while in doubt"),
                    ("guard", "Held back"),
                    ("allow", "Sent each time"),
                ],
                db_default="auto",
                default="auto",
                max_length=5,
                verbose_name="the same call again",
            ),
        ),
        migrations.AddField(
            model_name="toolset",
            name="own_tools",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[
                        ("await_call", "Wait for a call"),
                        ("get_call", "Look at a call"),
                        ("cancel_call", "Cancel a call"),
                        ("my_waiting_calls", "List calls that have not ended"),
                        ("justify", "Explain a call to those who decide, and answer them"),
                        ("explain", "Ask what rules would say of a call"),
                    ],
                    max_length=20,
                ),
                default=registry.models.own_tools,
                size=None,
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="tool",
            trigger=pgtrigger.compiler.Trigger(
                name="configuration",
                sql=core.triggers.StrictTriggerSql(
                    func="PERFORM core_configuration_changed(); RETURN NULL;",
                    hash="2241c85118cfd6c5d015134c8740a0220ed186c1",
                    level="STATEMENT",
                    operation='INSERT OR DELETE OR UPDATE OF "exposed_name", "state", "published_id", "mode", "is_long", "safe_to_repeat", "repeats", "timeout_s"',
                    pgid="pgtrigger_configuration_9b1dc",
                    table="registry_tool",
                    when="AFTER",
                ),
            ),
        ),
    ]

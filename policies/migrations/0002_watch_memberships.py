from django.db import migrations

from core.triggers import watch_tables


class Migration(migrations.Migration):
    """Who belongs where is configuration too."""

    dependencies = [("policies", "0001_initial")]
    operations = [
        migrations.RunSQL(forwards, backwards)
        for forwards, backwards in watch_tables(
            "policies_rule_agents", "policies_rule_owner_groups"
        )
    ]

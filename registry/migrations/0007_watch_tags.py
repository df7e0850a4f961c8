from django.db import migrations

from core.triggers import watch_tables


class Migration(migrations.Migration):
    """Conditions of rules look at tags."""

    dependencies = [("registry", "0006_list_what_is_known")]
    operations = [
        migrations.RunSQL(forwards, backwards)
        for forwards, backwards in watch_tables("registry_tool_tags")
    ]

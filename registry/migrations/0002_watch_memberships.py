from django.db import migrations

from core.triggers import watch_tables


class Migration(migrations.Migration):
    """Who belongs where is configuration too."""

    dependencies = [("registry", "0001_initial")]
    operations = [
        migrations.RunSQL(forwards, backwards)
        for forwards, backwards in watch_tables(
            "registry_toolset_servers", "registry_toolset_tools", "registry_toolset_agents"
        )
    ]

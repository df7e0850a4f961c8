from django.db import migrations

from core.triggers import watch_tables


class Migration(migrations.Migration):
    """Who belongs where is configuration too."""

    dependencies = [("accounts", "0001_initial")]
    operations = [
        migrations.RunSQL(forwards, backwards)
        for forwards, backwards in watch_tables("accounts_user_groups")
    ]

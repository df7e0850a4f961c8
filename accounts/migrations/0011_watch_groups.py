"""A group of another name is another one for rules."""

from django.db import migrations

from core.sql_files import watched


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0010_passkey_attempts"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = watched("auth_group")

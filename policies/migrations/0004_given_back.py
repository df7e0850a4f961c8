from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [
        ("policies", "0003_raised_limits"),
    ]

    operations = [run_file("policies/sql/limits.sql")]

from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [
        ("calls", "0006_how_calls_went"),
        ("policies", "0002_limits"),
    ]

    operations = [run_file("calls/sql/limits.sql")]

from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [
        ("calls", "0008_ascending_indexes"),
    ]

    operations = [run_file("calls/sql/limits.sql")]

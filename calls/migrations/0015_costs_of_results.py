from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [
        ("calls", "0014_freezes_by_service_accounts"),
        ("policies", "0010_cost_result"),
    ]

    operations = [run_file("calls/sql/limits.sql")]

from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [("approvals", "0018_erasing_triggers"), ("calls", "0018_retention")]

    operations = [run_file("approvals/sql/erasing_results.sql")]

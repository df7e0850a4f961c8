from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [("calls", "0015_costs_of_results"), ("audit", "0012_legal_entry_names")]

    operations = [run_file("calls/sql/erasing.sql")]

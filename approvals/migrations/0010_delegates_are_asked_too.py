from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_delegations")]

    operations = [run_file("approvals/sql/delegations.sql")]

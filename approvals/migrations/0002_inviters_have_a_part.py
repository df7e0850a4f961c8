from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    """Who let an account in may be behind it, and has a part in what it asks."""

    dependencies = [("approvals", "0001_squashed")]

    operations = [run_file("approvals/sql/eligibility.sql")]

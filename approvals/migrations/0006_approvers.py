from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    """The entry of a call's outcome names who approved it."""

    dependencies = [("approvals", "0005_second_approver")]

    operations = [run_file("approvals/sql/approvers.sql")]

from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    """What an invalid request said is erased with it."""

    dependencies = [
        ("approvals", "0003_delegates_deny"),
        ("calls", "0003_invalid_requests"),
    ]

    operations = [run_file("approvals/sql/erasing.sql")]

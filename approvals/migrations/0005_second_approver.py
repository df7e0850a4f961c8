from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    """Single-person mode ends by a second person whose votes count."""

    dependencies = [("approvals", "0004_words_of_invalid_requests")]

    operations = [
        run_file("approvals/sql/eligibility.sql"),
        run_file("approvals/sql/single_person_mode.sql"),
    ]

from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("core", "0001_initial"),
        ("core", "0002_search_paths"),
        ("core", "0001_squashed"),
        ("core", "0002_months"),
    ]

    operations = [
        run_file("core/sql/configuration.sql"),
        run_file("core/sql/months.sql"),
    ]

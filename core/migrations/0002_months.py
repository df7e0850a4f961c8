from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [("core", "0001_squashed")]

    operations = [run_file("core/sql/months.sql")]

from django.db import migrations

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [("calls", "0018_retention")]

    operations = [run_file("calls/sql/erasing.sql")]

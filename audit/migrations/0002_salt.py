from django.db import migrations, models

import audit.models.entries
from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_squashed")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[run_file("audit/sql/salt.sql")],
            state_operations=[
                migrations.AddField(
                    model_name="entry",
                    name="format",
                    field=models.SmallIntegerField(db_default=1, editable=False),
                ),
                migrations.AddField(
                    model_name="entry",
                    name="salt",
                    field=models.BinaryField(db_default=audit.models.entries.RandomBytes()),
                ),
            ],
        )
    ]

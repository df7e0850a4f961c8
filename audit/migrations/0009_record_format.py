from django.db import migrations, models

from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [("audit", "0008_forgotten_names")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[run_file("audit/sql/record_format.sql")],
            state_operations=[
                migrations.AddField(
                    model_name="signer",
                    name="name",
                    field=models.CharField(db_default="countersign", max_length=60),
                ),
            ],
        )
    ]

import django.db.models.deletion
from django.db import migrations, models

# Whichever it is: to the table of before, or to that of all months, with one for each of them.
DROP = """
DO $$
DECLARE
    one name;
BEGIN
    FOR one IN
        SELECT conname FROM pg_constraint WHERE conrelid = 'approvals_approval'::regclass
        AND contype = 'f' AND conparentid = 0 AND confrelid::regclass::text LIKE 'calls_call%'
    LOOP
        EXECUTE format('ALTER TABLE approvals_approval DROP CONSTRAINT %I', one);
    END LOOP;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_inviters_have_a_part"),
        ("calls", "0005_months"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(DROP)],
            state_operations=[
                migrations.AlterField(
                    model_name="approval",
                    name="call",
                    field=models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="approval",
                        serialize=False,
                        to="calls.call",
                    ),
                ),
            ],
        ),
    ]

import django.contrib.postgres.indexes
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import audit.models.sealing
import core.triggers
from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0002_salt"),
    ]

    operations = [
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("first_index", models.BigIntegerField(primary_key=True, serialize=False)),
                ("leaves", models.IntegerField()),
                ("ids", audit.models.sealing.Ids()),
                ("edge", models.BinaryField()),
            ],
            options={
                "ordering": ["first_index"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Tile",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "level",
                        "index",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("level", models.SmallIntegerField()),
                ("index", models.BigIntegerField()),
                ("hashes", models.BinaryField()),
                ("root", models.BinaryField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        run_file("audit/sql/tiles.sql"),
        migrations.DeleteModel(
            name="Leaf",
        ),
        migrations.DeleteModel(
            name="Node",
        ),
        migrations.RunSQL(
            "DROP FUNCTION pgtrigger_no_delete_0a0f0(), pgtrigger_no_truncate_aeb90(), pgtrigger_no_update_a9382(), pgtrigger_no_delete_e08ad(), pgtrigger_no_truncate_50369(), pgtrigger_no_update_88743()"
        ),
        migrations.AddIndex(
            model_name="batch",
            index=django.contrib.postgres.indexes.GistIndex(fields=["ids"], name="audit_batch_ids"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="batch",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_batch rows are never changed or removed';",
                    hash="0a5403935ffcd56c753a689af89fd725a6d8b924",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_dc804",
                    table="audit_batch",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="batch",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_batch rows are never changed or removed';",
                    hash="6df35ce48332a92ead8c00bd9bc68b5154050e7e",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_cab26",
                    table="audit_batch",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="batch",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_batch rows are never changed or removed';",
                    hash="3be6fd2126475c0ab7b29f1a841d5667c6c6b623",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_88626",
                    table="audit_batch",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="tile",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_tile rows are never changed or removed';",
                    hash="aff1978e309fa3384043dc8be3067d0d358073df",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_888d6",
                    table="audit_tile",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="tile",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_tile rows are never changed or removed';",
                    hash="1c6df5489a64e7e12e4a0896696a6c7d63a5c51b",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_dabf8",
                    table="audit_tile",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="tile",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_tile rows are never changed or removed';",
                    hash="2fa582b268d99465651168a701fe75cc2ce578d1",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_c593f",
                    table="audit_tile",
                    when="BEFORE",
                ),
            ),
        ),
    ]

import django.contrib.postgres.indexes
import django.db.models.functions.text
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import audit.models.entries
import core.triggers
from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0003_tiles"),
    ]

    operations = [
        run_file("audit/sql/entries_aside.sql"),
        migrations.CreateModel(
            name="Name",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=10)),
                ("subject", models.BigIntegerField(null=True)),
                ("text", models.TextField(blank=True)),
                ("server", models.CharField(blank=True, db_default="", max_length=64)),
                ("definition", models.CharField(blank=True, db_default="", max_length=64)),
                ("salt", models.BinaryField(null=True)),
                ("commitment", models.BinaryField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.RemoveField(
            model_name="line",
            name="entry",
        ),
        migrations.AlterModelOptions(
            name="entry",
            options={
                "base_manager_name": "objects",
                "default_permissions": ("view",),
                "managed": False,
                "ordering": ["-id"],
                "permissions": [("export_entry", "Can export entries")],
                "verbose_name_plural": "entries",
            },
        ),
        migrations.CreateModel(
            name="EntryRow",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                (
                    "transaction",
                    audit.models.entries.TransactionId(
                        db_default=audit.models.entries.CurrentTransaction(), editable=False
                    ),
                ),
                ("call_id", models.UUIDField(null=True)),
                ("action", models.IntegerField()),
                ("actor", models.IntegerField(null=True)),
                ("agent", models.IntegerField(null=True)),
                ("person", models.IntegerField(null=True)),
                ("tool", models.IntegerField(null=True)),
                ("context", models.IntegerField(null=True)),
                ("reason", models.IntegerField(null=True)),
                ("seq", models.SmallIntegerField(null=True)),
                ("format", models.SmallIntegerField(db_default=2)),
                (
                    "salt",
                    models.BinaryField(db_default=audit.models.entries.RandomBytes(), null=True),
                ),
                ("from_state", models.CharField(blank=True, db_default="", max_length=10)),
                ("to_state", models.CharField(blank=True, db_default="", max_length=10)),
                ("arguments", models.BinaryField(null=True)),
                ("result", models.BinaryField(null=True)),
                ("details", models.JSONField(null=True)),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    django.contrib.postgres.indexes.BrinIndex(fields=["at"], name="audit_entry_at"),
                    models.Index(
                        condition=models.Q(("call_id__isnull", False), ("seq__isnull", True)),
                        fields=["call_id"],
                        name="audit_entry_beside",
                    ),
                    models.Index(
                        condition=models.Q(("action__gt", 2)),
                        fields=["action", "id"],
                        name="audit_entry_action",
                    ),
                    models.Index(
                        condition=models.Q(("actor__gt", 4)),
                        fields=["actor", "id"],
                        name="audit_entry_actor",
                    ),
                    models.Index(
                        condition=models.Q(("agent__isnull", False)),
                        fields=["agent", "id"],
                        name="audit_entry_agent",
                    ),
                    models.Index(
                        condition=models.Q(("person__isnull", False)),
                        fields=["person", "id"],
                        name="audit_entry_person",
                    ),
                    models.Index(
                        condition=models.Q(("tool__isnull", False)),
                        fields=["tool", "id"],
                        name="audit_entry_tool",
                    ),
                    models.Index(
                        condition=models.Q(("context__isnull", False)),
                        fields=["context", "id"],
                        name="audit_entry_context",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("seq__isnull", False)),
                        fields=("call_id", "seq"),
                        name="audit_one_entry_a_move",
                    )
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="entryrow",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_entryrow rows are never changed or removed';",
                    hash="95e20e91b476222beabaf3253e3fe13b7bd8427a",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_3480f",
                    table="audit_entryrow",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="entryrow",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_entryrow rows are never changed or removed';",
                    hash="075866cd92fd5ced2ca467dbcfb4cd0cfa322dd5",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_6f954",
                    table="audit_entryrow",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="entryrow",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_entryrow rows are never changed or removed';",
                    hash="54c1ae20d24a336b7609b86b3929917150416a0f",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_44695",
                    table="audit_entryrow",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="name",
            index=models.Index(
                models.F("kind"),
                django.db.models.functions.text.Left("text", 500),
                name="audit_name_text",
            ),
        ),
        migrations.AddIndex(
            model_name="name",
            index=models.Index(
                models.F("server"),
                condition=models.Q(("server", ""), _negated=True),
                name="audit_name_server",
            ),
        ),
        migrations.AddIndex(
            model_name="name",
            index=models.Index(
                models.F("kind"),
                models.F("subject"),
                condition=models.Q(("subject", None), _negated=True),
                name="audit_name_subject",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="name",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_name rows are never changed or removed';",
                    hash="88961db3ca4e8770a2574fe6cbb54dd47cbfea84",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_5adb8",
                    table="audit_name",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="name",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_name rows are never changed or removed';",
                    hash="a674b5c7485dc56b081189ec9f33a949648db03b",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_407bf",
                    table="audit_name",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="name",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_name rows are never changed or removed';",
                    hash="9395bcf38302d3dbedf30dac5f6c3120b9dadceb",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_408ef",
                    table="audit_name",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.DeleteModel(
            name="Line",
        ),
        run_file("audit/sql/names.sql"),
        run_file("audit/sql/first_names.sql"),
        run_file("audit/sql/entries_in_numbers.sql"),
        run_file("audit/sql/entries.sql"),
    ]

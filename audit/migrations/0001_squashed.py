import django.contrib.postgres.indexes
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

import audit.models.entries
import core.triggers
from core.sql_files import run_file


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("audit", "0001_initial"),
        ("audit", "0002_sealed_and_found"),
        ("audit", "0003_every_decision"),
        ("audit", "0004_progress_from_leaves"),
        ("audit", "0005_origins"),
        ("audit", "0006_signers"),
        ("audit", "0007_secrets"),
    ]

    dependencies = [
        ("core", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Checkpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("size", models.BigIntegerField(db_index=True)),
                ("root", models.BinaryField()),
                ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ("note", models.TextField()),
            ],
            options={
                "ordering": ["-id"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                (
                    "transaction",
                    audit.models.entries.TransactionId(
                        db_default=audit.models.entries.CurrentTransaction(), editable=False
                    ),
                ),
                ("action", models.CharField(max_length=40)),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[
                            ("agent", "Agent"),
                            ("person", "Person"),
                            ("policy", "Policy"),
                            ("system", "System"),
                        ],
                        max_length=6,
                    ),
                ),
                ("actor_id", models.BigIntegerField(null=True)),
                ("actor", models.CharField(max_length=200)),
                ("call_id", models.UUIDField(null=True)),
                ("seq", models.SmallIntegerField(null=True)),
                ("from_state", models.CharField(blank=True, db_default="", max_length=10)),
                ("to_state", models.CharField(blank=True, db_default="", max_length=10)),
                ("agent_id", models.BigIntegerField(null=True)),
                ("agent", models.CharField(blank=True, db_default="", max_length=100)),
                ("person_id", models.BigIntegerField(null=True)),
                ("person", models.CharField(blank=True, db_default="", max_length=150)),
                ("server", models.CharField(blank=True, db_default="", max_length=64)),
                ("tool", models.CharField(blank=True, db_default="", max_length=200)),
                ("definition_digest", models.CharField(blank=True, db_default="", max_length=64)),
                ("arguments_digest", models.CharField(blank=True, db_default="", max_length=64)),
                ("result_digest", models.CharField(blank=True, db_default="", max_length=64)),
                ("reason", models.TextField(blank=True, db_default="")),
                (
                    "details",
                    models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
                ),
            ],
            options={
                "verbose_name_plural": "entries",
                "ordering": ["-id"],
                "permissions": [("export_entry", "Can export entries")],
                "default_permissions": ("view",),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Export",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ("query", models.JSONField(default=dict)),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("csv", "CSV"),
                            ("jsonl", "JSONL"),
                            ("proof", "JSONL with proofs"),
                        ],
                        max_length=5,
                    ),
                ),
                ("first_id", models.BigIntegerField()),
                ("last_id", models.BigIntegerField()),
                ("size", models.BigIntegerField(default=0)),
                ("rows", models.BigIntegerField(default=0)),
                ("reached_id", models.BigIntegerField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("digest", models.CharField(blank=True, max_length=64)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Leaf",
            fields=[
                ("index", models.BigIntegerField(primary_key=True, serialize=False)),
                ("entry_id", models.BigIntegerField(unique=True)),
                ("salt", models.BinaryField()),
                ("hash", models.BinaryField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("level", models.SmallIntegerField()),
                ("index", models.BigIntegerField()),
                ("hash", models.BinaryField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Origin",
            fields=[
                ("number", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("began_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ("index", models.BigIntegerField(default=0)),
                ("kept", models.BigIntegerField(default=0)),
                ("system_identifier", models.CharField(max_length=20)),
                ("table_oid", models.BigIntegerField()),
            ],
            options={
                "ordering": ["-number"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Rollback",
            fields=[
                ("origin", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("noticed_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ("reason", models.TextField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SavedFilter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60, verbose_name="name")),
                ("query", models.JSONField(default=dict)),
                ("shared", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ["name"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Secret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("fingerprint", models.CharField(max_length=16)),
                ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Signer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public", models.BinaryField()),
                ("first_size", models.BigIntegerField()),
                ("from_secret", models.BooleanField(default=False)),
                ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="checkpoint",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_checkpoint rows are never changed or removed';",
                    hash="373c3e548971c1abaca89f8dc90a7c3dbd64d20a",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_ec88f",
                    table="audit_checkpoint",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="checkpoint",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_checkpoint rows are never changed or removed';",
                    hash="64296ec2509ab5c0b0ab26c1754ff98cab4ad947",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_0f186",
                    table="audit_checkpoint",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="checkpoint",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_checkpoint rows are never changed or removed';",
                    hash="7cefd492f9d6b77fd95d4c120eb5dde78b60e8d6",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_bfd75",
                    table="audit_checkpoint",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.CreateModel(
            name="Line",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="audit.entry",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("action", models.CharField(max_length=40)),
                ("actor", models.CharField(blank=True, max_length=200)),
                ("agent", models.CharField(blank=True, max_length=100)),
                ("person", models.CharField(blank=True, max_length=150)),
                ("server", models.CharField(blank=True, max_length=64)),
                ("tool", models.CharField(blank=True, max_length=200)),
                ("definition", models.CharField(blank=True, max_length=16)),
                ("effect", models.CharField(blank=True, max_length=5)),
                ("rule", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="entry",
            index=django.contrib.postgres.indexes.BrinIndex(fields=["at"], name="audit_entry_at"),
        ),
        migrations.AddIndex(
            model_name="entry",
            index=models.Index(
                condition=models.Q(("call_id__isnull", False), ("seq__isnull", True)),
                fields=["call_id"],
                name="audit_entry_beside",
            ),
        ),
        migrations.AddConstraint(
            model_name="entry",
            constraint=models.UniqueConstraint(
                condition=models.Q(("seq__isnull", False)),
                fields=("call_id", "seq"),
                name="audit_one_entry_a_move",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="entry",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_entry rows are never changed or removed';",
                    hash="0a741de7acc368f51a9ca05984265d253fa14a18",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_0bb6f",
                    table="audit_entry",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="entry",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_entry rows are never changed or removed';",
                    hash="248add14725a2999585db696dd72daef90600571",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_54e9b",
                    table="audit_entry",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="entry",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_entry rows are never changed or removed';",
                    hash="636d66296ac930badf9b1caa63dfbf009745d306",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_32091",
                    table="audit_entry",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddField(
            model_name="export",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="leaf",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_leaf rows are never changed or removed';",
                    hash="e8e9c95068ed7fb5fd5a180243a28217d9c619a2",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_a9382",
                    table="audit_leaf",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="leaf",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_leaf rows are never changed or removed';",
                    hash="0538d05a53d1be77c43a6f7a14eeca07559c9af2",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_0a0f0",
                    table="audit_leaf",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="leaf",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_leaf rows are never changed or removed';",
                    hash="f5fcdb10074d67f02e71b6046d057265696ab744",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_aeb90",
                    table="audit_leaf",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.UniqueConstraint(fields=("level", "index"), name="audit_node_place"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="node",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_node rows are never changed or removed';",
                    hash="c8f1598f69ae6f54b23a88bb51c6ac8f53ab25e3",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_88743",
                    table="audit_node",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="node",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_node rows are never changed or removed';",
                    hash="a0f835221fb93349fb5a4cea1fc141c33c452112",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_e08ad",
                    table="audit_node",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="node",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_node rows are never changed or removed';",
                    hash="b02d6b8e24eed58fc3402099e5ed00b1e44b7aa8",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_50369",
                    table="audit_node",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="origin",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_origin rows are never changed or removed';",
                    hash="cea0b094a7f6f685cc1aacafac29644c705006bc",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_e5603",
                    table="audit_origin",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="origin",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_origin rows are never changed or removed';",
                    hash="714c182fa9faad42cde4d53656abe5f2f2036727",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_ee3c8",
                    table="audit_origin",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="origin",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_origin rows are never changed or removed';",
                    hash="e9250f790e454a3e009e173707f7f13ed4ebd33b",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_15837",
                    table="audit_origin",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rollback",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_rollback rows are never changed or removed';",
                    hash="f237e9747313a946e892c3f4304e3de8dca265e2",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_5ff8b",
                    table="audit_rollback",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rollback",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_rollback rows are never changed or removed';",
                    hash="c23d0eb78e04b2cb585fc81f3ee0fa3a6918efdc",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_d678b",
                    table="audit_rollback",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rollback",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_rollback rows are never changed or removed';",
                    hash="fe8dd37df93345ac6683ffc8d648405d09728139",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_a96f5",
                    table="audit_rollback",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rollback",
            trigger=pgtrigger.compiler.Trigger(
                name="configuration",
                sql=core.triggers.StrictTriggerSql(
                    func="PERFORM core_configuration_changed(); RETURN NULL;",
                    hash="f171e7c3a754b989c9d8a8a472d5c47bde89c3a6",
                    level="STATEMENT",
                    operation="INSERT OR DELETE OR UPDATE",
                    pgid="pgtrigger_configuration_8fb99",
                    table="audit_rollback",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddField(
            model_name="savedfilter",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="secret",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_secret rows are never changed or removed';",
                    hash="55445301b0e59fb2ffdbb0e2bd0611b245732bb5",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_17b0a",
                    table="audit_secret",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="secret",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_secret rows are never changed or removed';",
                    hash="78fff5655ea802a903ad5180c338a1327eb65e91",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_7b248",
                    table="audit_secret",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="secret",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_secret rows are never changed or removed';",
                    hash="96360905b22b1eea3524849532f7bc2363e525ef",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_981eb",
                    table="audit_secret",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signer",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_signer rows are never changed or removed';",
                    hash="8122241ce39e0db178bf54bd13a2b4a1cf69f166",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_d4de2",
                    table="audit_signer",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signer",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_signer rows are never changed or removed';",
                    hash="16410bf6484aff886a1572e343c89b9ed1ba2365",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_e70dc",
                    table="audit_signer",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signer",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'audit_signer rows are never changed or removed';",
                    hash="388215d98b1992c92bb617e127cfc0b81e020dba",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_95252",
                    table="audit_signer",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(fields=["at"], name="audit_line_at"),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(fields=["action", "entry"], name="audit_line_action"),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("actor", ""), _negated=True),
                fields=["actor", "entry"],
                name="audit_line_actor",
            ),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("agent", ""), _negated=True),
                fields=["agent", "entry"],
                name="audit_line_agent",
            ),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("person", ""), _negated=True),
                fields=["person", "entry"],
                name="audit_line_person",
            ),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("server", ""), _negated=True),
                fields=["server", "entry"],
                name="audit_line_server",
            ),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("tool", ""), _negated=True),
                fields=["tool", "entry"],
                name="audit_line_tool",
            ),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("definition", ""), _negated=True),
                fields=["definition", "entry"],
                name="audit_line_definition",
            ),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("effect", ""), _negated=True),
                fields=["effect", "entry"],
                name="audit_line_effect",
            ),
        ),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("rule", ""), _negated=True),
                fields=["rule", "entry"],
                name="audit_line_rule",
            ),
        ),
        migrations.AddConstraint(
            model_name="savedfilter",
            constraint=models.UniqueConstraint(
                fields=("owner", "name"),
                name="audit_saved_filter_once",
                violation_error_message="You have a filter of this name already.",
            ),
        ),
        run_file("audit/sql/first_origin.sql"),
    ]

import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.text
import django.db.models.lookups
import pgtrigger.compiler
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

import audit.models.entries
import audit.models.sealing
import core.triggers
from core.create_models import CreateModels
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
        ("audit", "0001_squashed"),
        ("audit", "0002_salt"),
        ("audit", "0003_tiles"),
        ("audit", "0004_entries_in_numbers"),
        ("audit", "0005_thinning"),
        ("audit", "0006_origin_name"),
        ("audit", "0007_forgetting"),
        ("audit", "0008_forgotten_names"),
        ("audit", "0009_record_format"),
        ("audit", "0010_legal_entries"),
        ("audit", "0011_entries_by_block"),
        ("audit", "0012_legal_entry_names"),
        ("audit", "0013_reason_index"),
    ]

    dependencies = [
        ("accounts", "0001_joined"),
        ("core", "0001_joined"),
    ]

    operations = [
        CreateModels(
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
                    "indexes": [
                        models.Index(
                            models.F("kind"),
                            django.db.models.functions.text.Left("text", 500),
                            name="audit_name_text",
                        ),
                        models.Index(
                            models.F("server"),
                            condition=models.Q(("server", ""), _negated=True),
                            name="audit_name_server",
                        ),
                        models.Index(
                            models.F("kind"),
                            models.F("subject"),
                            condition=models.Q(("subject", None), _negated=True),
                            name="audit_name_subject",
                        ),
                        models.Index(
                            condition=models.Q(("salt", None)),
                            fields=["id"],
                            name="audit_name_forgotten",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="legal_name",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF NEW.salt IS NULL OR octet_length(NEW.salt) <> 16\n            OR NEW.commitment IS DISTINCT FROM audit_commitment(\n                NEW.salt, NEW.kind, NEW.subject, NEW.text, NEW.server, NEW.definition)\n        THEN\n            RAISE EXCEPTION 'a name that is not what it would be sealed by';\n        END IF;\n        IF NEW.kind IN ('agent', 'person', 'policy', 'system') THEN\n            IF NEW.server || NEW.definition <> '' THEN\n                RAISE EXCEPTION 'only tools have a server and a definition';\n            END IF;\n        ELSIF NEW.kind NOT IN ('action', 'tool', 'reason', 'context') OR NEW.subject IS NOT NULL\n            OR NEW.kind <> 'tool' AND NEW.server || NEW.definition <> ''\n        THEN\n            RAISE EXCEPTION 'a name of no kind that entries have';\n        ELSIF NEW.kind = 'context' THEN\n            IF NEW.text IS NOT JSON OBJECT WITH UNIQUE KEYS THEN\n                RAISE EXCEPTION 'a context is an object in JSON';\n            ELSIF NEW.text::jsonb - ARRAY['effect', 'rule', 'origin', 'revision', 'toolset'] <> '{}' OR NOT (\n    jsonb_typeof(NEW.text::jsonb) = 'object'\n    AND NOT jsonb_path_exists(NEW.text::jsonb, 'strict $.**{2 to last}')\n    AND NOT jsonb_path_exists(\n        NEW.text::jsonb, 'strict $.** ? (@.type() == \"number\" && (@ > 1e300 || @ < -1e300))')) THEN\n                RAISE EXCEPTION 'a context has other facts than these';\n            END IF;\n        END IF;\n        RETURN NEW;\n        ",
                                hash="4a74831df013571c8b75f954cda1884b14e8c979",
                                operation="INSERT",
                                pgid="pgtrigger_legal_name_72726",
                                table="audit_name",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
                            name="only_forgotten",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF (\n    OLD.kind IN ('agent', 'person', 'reason') AND NEW.salt IS NULL\n    AND (NEW.id, NEW.kind, NEW.commitment, NEW.subject, NEW.text, NEW.server, NEW.definition)\n        IS NOT DISTINCT FROM (OLD.id, OLD.kind, OLD.commitment, NULL::bigint, '', '', '')\n) IS NOT TRUE THEN\n            RAISE EXCEPTION 'audit_name rows are never changed, only forgotten';\n        END IF;\n        IF NOT EXISTS (\n            SELECT FROM audit_entryrow e JOIN audit_name a ON a.id = e.action\n            WHERE e.at >= transaction_timestamp() AND e.transaction = pg_current_xact_id()\n              AND a.kind = 'action' AND a.text = 'record.forgotten'\n              AND e.details -> 'commitments' ? encode(OLD.commitment, 'hex'))\n        THEN\n            RAISE EXCEPTION 'nothing is forgotten without an entry';\n        END IF;\n        RETURN NEW;\n        ",
                                hash="cddc85b220044514a760f9cbe61053a3c98e1af1",
                                operation="UPDATE",
                                pgid="pgtrigger_only_forgotten_8b9f3",
                                table="audit_name",
                                when="BEFORE",
                            ),
                        ),
                    ],
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
                        models.BinaryField(
                            db_default=audit.models.entries.RandomBytes(), null=True
                        ),
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
                        django.contrib.postgres.indexes.BrinIndex(
                            fields=["at"], name="audit_entry_at"
                        ),
                        models.Index(
                            condition=models.Q(("call_id__isnull", False), ("seq__isnull", True)),
                            fields=["call_id"],
                            name="audit_entry_beside",
                        ),
                        models.Index(
                            condition=models.Q(("salt__isnull", True)),
                            fields=["id"],
                            name="audit_entry_forgotten",
                        ),
                        models.Index(
                            condition=models.Q(
                                ("reason__isnull", False),
                                models.Q(
                                    ("seq__isnull", True),
                                    ("seq__gt", 1),
                                    ("to_state", "refused"),
                                    _connector="OR",
                                ),
                            ),
                            fields=["reason"],
                            name="audit_entry_reason",
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
                            models.F("agent"),
                            models.ExpressionWrapper(
                                django.db.models.expressions.CombinedExpression(
                                    models.F("id"), ">>", models.Value(10)
                                ),
                                models.BigIntegerField(),
                            ),
                            condition=models.Q(("agent__isnull", False)),
                            name="audit_entry_agent",
                        ),
                        models.Index(
                            models.F("person"),
                            models.ExpressionWrapper(
                                django.db.models.expressions.CombinedExpression(
                                    models.F("id"), ">>", models.Value(10)
                                ),
                                models.BigIntegerField(),
                            ),
                            condition=models.Q(("person__isnull", False)),
                            name="audit_entry_person",
                        ),
                        models.Index(
                            models.F("tool"),
                            models.ExpressionWrapper(
                                django.db.models.expressions.CombinedExpression(
                                    models.F("id"), ">>", models.Value(10)
                                ),
                                models.BigIntegerField(),
                            ),
                            condition=models.Q(("tool__isnull", False)),
                            name="audit_entry_tool",
                        ),
                        models.Index(
                            models.F("context"),
                            models.ExpressionWrapper(
                                django.db.models.expressions.CombinedExpression(
                                    models.F("id"), ">>", models.Value(10)
                                ),
                                models.BigIntegerField(),
                            ),
                            condition=models.Q(("context__isnull", False)),
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
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="legal_entry",
                            sql=core.triggers.StrictTriggerSql(
                                declare="DECLARE wrong text;",
                                func="\n        SELECT looked.why INTO wrong FROM (\n            SELECT CASE used.as_what\n                WHEN 'action' THEN 'an entry whose action is none, or the record''s own'\n                ELSE 'an entry with a name that is not there, or of another kind'\n            END AS why FROM (\n                -- Entries that are written together have most of their names in common.\n                SELECT DISTINCT one.as_what, one.id FROM new_rows n CROSS JOIN LATERAL (VALUES\n                    ('action', n.action), ('actor', n.actor), ('agent', n.agent),\n                    ('person', n.person), ('tool', n.tool), ('reason', n.reason),\n                    ('context', n.context)) one (as_what, id)\n                WHERE one.id IS NOT NULL\n            ) used\n            WHERE (SELECT CASE used.as_what\n                WHEN 'action' THEN k.kind = 'action' AND (k.text NOT LIKE 'record.%' OR pg_has_role((\n            SELECT c.relowner FROM pg_class c WHERE c.oid = 'audit_entryrow'::regclass), 'USAGE'))\n                WHEN 'actor' THEN k.kind IN ('agent', 'person', 'policy', 'system')\n                ELSE k.kind = used.as_what\n            END FROM audit_name k WHERE k.id = used.id) IS NOT TRUE\n            UNION ALL\n            SELECT 'an entry whose details cannot be read, or say what its context says'\n            FROM new_rows n WHERE n.details IS NOT NULL AND (\n                (\n    jsonb_typeof(n.details) = 'object'\n    AND NOT jsonb_path_exists(n.details, 'strict $.**{30 to last}')\n    AND NOT jsonb_path_exists(\n        n.details, 'strict $.** ? (@.type() == \"number\" && (@ > 1e300 || @ < -1e300))')) IS NOT TRUE OR n.context IS NOT NULL AND n.details ?| ARRAY['effect', 'rule', 'origin', 'revision', 'toolset'])\n        ) looked LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n        ",
                                hash="06ddbf79d009d00ce058b08b6b04c5e9c6ace736",
                                level="STATEMENT",
                                operation="INSERT",
                                pgid="pgtrigger_legal_entry_7a8e7",
                                referencing="REFERENCING NEW TABLE AS new_rows ",
                                table="audit_entryrow",
                                when="AFTER",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
                            name="only_forgotten",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF (\n    OLD.format = 2 AND OLD.salt IS NOT NULL AND NEW.salt IS NULL\n    AND to_jsonb(NEW) - ARRAY['salt', 'details'] = to_jsonb(OLD) - ARRAY['salt', 'details']\n    AND NEW.details - 'commitment' = jsonb_build_object(\n        'arguments', encode(sha256(OLD.salt || 'arguments'), 'hex'),\n        'result', encode(sha256(OLD.salt || 'result'), 'hex'))\n) IS NOT TRUE THEN\n            RAISE EXCEPTION 'audit_entryrow rows are never changed, only forgotten';\n        END IF;\n        IF NOT EXISTS (\n            SELECT FROM audit_entryrow e JOIN audit_name a ON a.id = e.action\n            WHERE e.at >= transaction_timestamp() AND e.transaction = pg_current_xact_id()\n              AND a.kind = 'action' AND a.text = 'record.forgotten'\n              AND e.details -> 'commitments' ? (NEW.details ->> 'commitment'))\n        THEN\n            RAISE EXCEPTION 'nothing is forgotten without an entry';\n        END IF;\n        RETURN NEW;\n        ",
                                hash="6648574c2b7d513994e10c94ce76390dffcb509e",
                                operation="UPDATE",
                                pgid="pgtrigger_only_forgotten_ea972",
                                table="audit_entryrow",
                                when="BEFORE",
                            ),
                        ),
                    ],
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
                    ("format", models.SmallIntegerField(db_default=2, editable=False)),
                    ("salt", models.BinaryField(db_default=audit.models.entries.RandomBytes())),
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
                    (
                        "definition_digest",
                        models.CharField(blank=True, db_default="", max_length=64),
                    ),
                    (
                        "arguments_digest",
                        models.CharField(blank=True, db_default="", max_length=64),
                    ),
                    ("result_digest", models.CharField(blank=True, db_default="", max_length=64)),
                    ("reason", models.TextField(blank=True, db_default="")),
                    (
                        "details",
                        models.JSONField(
                            db_default=models.Value({}, models.JSONField()), default=dict
                        ),
                    ),
                ],
                options={
                    "verbose_name_plural": "entries",
                    "ordering": ["-id"],
                    "permissions": [("export_entry", "Can export entries")],
                    "managed": False,
                    "default_permissions": ("view",),
                    "base_manager_name": "objects",
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
                    (
                        "owner",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("name", models.CharField(max_length=60, verbose_name="name")),
                    ("query", models.JSONField(default=dict)),
                    ("shared", models.BooleanField(default=False)),
                ],
                options={
                    "ordering": ["name"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("owner", "name"),
                            name="audit_saved_filter_once",
                            violation_error_message="You have a filter of this name already.",
                        )
                    ],
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
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
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
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
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
                    "indexes": [
                        django.contrib.postgres.indexes.GistIndex(
                            fields=["ids"], name="audit_batch_ids"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
            migrations.CreateModel(
                name="Origin",
                fields=[
                    ("number", models.SmallIntegerField(primary_key=True, serialize=False)),
                    ("began_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                    ("name", models.CharField(db_default="countersign", max_length=60)),
                    ("index", models.BigIntegerField(default=0)),
                    ("kept", models.BigIntegerField(default=0)),
                    ("system_identifier", models.CharField(max_length=20)),
                    ("table_oid", models.BigIntegerField()),
                ],
                options={
                    "ordering": ["-number"],
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
            migrations.CreateModel(
                name="Rollback",
                fields=[
                    ("origin", models.SmallIntegerField(primary_key=True, serialize=False)),
                    (
                        "noticed_at",
                        models.DateTimeField(db_default=audit.models.entries.ClockTime()),
                    ),
                    ("reason", models.TextField()),
                ],
                options={
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
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
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
                            name="thinned",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF NOT audit_may_thin(OLD.size, OLD.at,\n            (SELECT at FROM audit_checkpoint WHERE id < OLD.id ORDER BY id DESC LIMIT 1),\n            (SELECT at FROM audit_checkpoint WHERE id > OLD.id ORDER BY id LIMIT 1))\n        THEN\n            RAISE EXCEPTION 'checkpoint % is kept: younger ones do not stand for it', OLD.id;\n        END IF;\n        RETURN OLD;\n    ",
                                hash="63c26eb514bbcf3d5199c47d5f9fa24f8237ebc8",
                                operation="DELETE",
                                pgid="pgtrigger_thinned_d4a98",
                                table="audit_checkpoint",
                                when="BEFORE",
                            ),
                        ),
                    ],
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
                    ("name", models.CharField(db_default="countersign", max_length=60)),
                    ("first_size", models.BigIntegerField()),
                    ("from_secret", models.BooleanField(default=False)),
                    ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
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
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
        ),
        # As in databases that had names before they had this.
        AddConstraintNotValid(
            model_name="name",
            constraint=models.CheckConstraint(
                condition=django.db.models.lookups.Exact(
                    django.db.models.functions.text.Length("commitment"), 32
                ),
                name="audit_name_commitment",
            ),
        ),
        run_file("audit/sql/tiles.sql"),
        run_file("audit/sql/thinning.sql"),
        run_file("audit/sql/names.sql"),
        run_file("audit/sql/first_names.sql"),
        run_file("audit/sql/entries.sql"),
        run_file("audit/sql/first_origin.sql"),
    ]

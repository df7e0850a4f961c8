import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.utils.timezone
import pgtrigger.compiler
from django.conf import settings
from django.db import migrations, models

import audit.models.entries
import core.triggers
from core.create_models import CreateModels
from core.sql_files import run_file


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("calls", "0001_initial"),
        ("calls", "0002_bound_to_what_was_seen"),
        ("calls", "0003_attempts"),
        ("calls", "0004_reruns"),
        ("calls", "0005_one_look"),
        ("calls", "0006_amendments"),
        ("calls", "0007_late_replies_and_tasks"),
        ("calls", "0008_asked"),
        ("calls", "0009_by_state"),
        ("calls", "0010_freezes"),
        ("calls", "0011_once"),
        ("calls", "0012_big_results"),
        ("calls", "0013_log_lines"),
        ("calls", "0014_inputs"),
        ("calls", "0015_rounds"),
        ("calls", "0016_levels"),
        ("calls", "0017_log_data"),
        ("calls", "0018_listed_tasks"),
        ("calls", "0019_links"),
        ("calls", "0020_plain_moves"),
        ("calls", "0021_as_the_server_reported"),
        ("calls", "0022_pauses"),
        ("calls", "0001_squashed"),
        ("calls", "0002_entries_in_numbers"),
        ("calls", "0003_progress_rate"),
        ("calls", "0004_fingerprint_index"),
        ("calls", "0005_months"),
        ("calls", "0006_how_calls_went"),
        ("calls", "0007_limits"),
        ("calls", "0008_ascending_indexes"),
        ("calls", "0009_keys_at_limits"),
        ("calls", "0010_locks_of_limits"),
        ("calls", "0011_move_tally"),
        ("calls", "0012_durations"),
        ("calls", "0013_received_results"),
        ("calls", "0014_freezes_by_service_accounts"),
        ("calls", "0015_costs_of_results"),
        ("calls", "0016_erasing"),
        ("calls", "0017_erasing_triggers"),
        ("calls", "0018_retention"),
    ]

    dependencies = [
        ("accounts", "0001_joined"),
        ("audit", "0001_joined"),
        ("registry", "0001_joined"),
    ]

    operations = [
        CreateModels(
            migrations.CreateModel(
                name="LogLevel",
                fields=[
                    ("session", models.CharField(max_length=64, primary_key=True, serialize=False)),
                    ("level", models.CharField(max_length=9)),
                    ("set_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["set_at"], name="calls_loglevel_old")],
                },
            ),
            migrations.CreateModel(
                name="Freeze",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "agent",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="freezes",
                            to="accounts.agent",
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="freezes",
                            to="registry.server",
                        ),
                    ),
                    ("reason", models.CharField(max_length=300)),
                    (
                        "by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "account",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.serviceaccount",
                        ),
                    ),
                    ("began_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                    ("ended_at", models.DateTimeField(null=True)),
                    (
                        "ended_by",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "ended_account",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.serviceaccount",
                        ),
                    ),
                    (
                        "ended_why",
                        models.CharField(blank=True, db_default="", default="", max_length=300),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "permissions": [
                        ("begin_freeze", "Can freeze an agent, a server or everything"),
                        ("end_freeze", "Can end what somebody else froze"),
                    ],
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("agent", None), ("server", None), _connector="OR"),
                            name="calls_freeze_one_thing",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                ("ended_by", None),
                                models.Q(("ended_by", models.F("by")), _negated=True),
                                _connector="OR",
                            ),
                            name="calls_freeze_ended_by_another",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                ("ended_account", None),
                                models.Q(("ended_account", models.F("account")), _negated=True),
                                _connector="OR",
                            ),
                            name="calls_freeze_ended_by_another_account",
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(("ended_at", None)),
                            fields=("agent", "server"),
                            name="calls_freeze_once",
                            nulls_distinct=False,
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="e41be4b46fcf76b39b2e2925c2c31de67dc2c28e",
                                level="STATEMENT",
                                operation="INSERT OR DELETE OR UPDATE",
                                pgid="pgtrigger_configuration_25774",
                                table="calls_freeze",
                                when="AFTER",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="only_ends",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL OR NEW.ended_by_id IS NULL OR\n            (to_jsonb(NEW) - '{ended_at,ended_by_id,ended_account_id,ended_why}'::text[])\n            IS DISTINCT FROM\n            (to_jsonb(OLD) - '{ended_at,ended_by_id,ended_account_id,ended_why}'::text[])\n        THEN\n            RAISE EXCEPTION 'a freeze is never changed, only ended';\n        END IF;\n        NEW.ended_at = clock_timestamp();\n        RETURN NEW;\n    ",
                                hash="d902ac02c62fb31eec0ad26f93e1bc82a0331fc8",
                                operation="UPDATE",
                                pgid="pgtrigger_only_ends_b31c6",
                                table="calls_freeze",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_freeze rows are never changed or removed';",
                                hash="8b4c6b4d0937634a6aefb8920afa530abaf029f8",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_8fa8b",
                                table="calls_freeze",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_freeze rows are never changed or removed';",
                                hash="72d8dce1b567721cec08faab346a6f4fcbcb6749",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_e0cfb",
                                table="calls_freeze",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Pause",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("reason", models.CharField(max_length=300)),
                    ("by", models.CharField(max_length=200)),
                    ("began_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                    ("ended_at", models.DateTimeField(null=True)),
                    (
                        "ended_by",
                        models.CharField(blank=True, db_default="", default="", max_length=200),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            condition=models.Q(("ended_at", None)),
                            fields=("ended_at",),
                            name="calls_pause_once",
                            nulls_distinct=False,
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="0b388b064fdf8508a886e8a97763315d8976ebcd",
                                level="STATEMENT",
                                operation="INSERT OR DELETE OR UPDATE",
                                pgid="pgtrigger_configuration_01ea1",
                                table="calls_pause",
                                when="AFTER",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_pause rows are never changed or removed';",
                                hash="31acdb16686453e8f872969c9ee4b6a0ca4fadb6",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_231b1",
                                table="calls_pause",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_pause rows are never changed or removed';",
                                hash="9d7c4b8bbfe38a84e840942c8245511933d5e094",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_6a737",
                                table="calls_pause",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Once",
                fields=[
                    ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                    ("call_id", models.UUIDField()),
                    ("lasts_s", models.PositiveIntegerField()),
                    ("guard", models.BooleanField()),
                    ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["at"], name="calls_once_at")],
                },
            ),
            migrations.CreateModel(
                name="RetentionPeriod",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "content",
                        models.CharField(
                            choices=[("payload", "Payload"), ("result", "Result only")],
                            max_length=7,
                        ),
                    ),
                    (
                        "scope",
                        models.CharField(
                            choices=[
                                ("tool", "Tool"),
                                ("tag", "Tag"),
                                ("label", "Label"),
                                ("server", "Server"),
                                ("all", "All calls"),
                            ],
                            max_length=6,
                        ),
                    ),
                    ("target", models.CharField(blank=True, max_length=200)),
                    (
                        "days",
                        models.PositiveIntegerField(
                            blank=True,
                            null=True,
                            validators=[
                                django.core.validators.MinValueValidator(1),
                                django.core.validators.MaxValueValidator(36525),
                            ],
                        ),
                    ),
                ],
                options={
                    "ordering": ["content", "scope", "target"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("content", "scope", "target"), name="calls_one_period"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                ("days__isnull", True),
                                models.Q(("days__gte", 1), ("days__lte", 36525)),
                                _connector="OR",
                            ),
                            name="calls_period_days",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("scope", "all"), ("target", "")),
                                models.Q(
                                    models.Q(("scope", "all"), _negated=True),
                                    models.Q(("target", ""), _negated=True),
                                ),
                                _connector="OR",
                            ),
                            name="calls_period_target",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="RetentionProgress",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "content",
                        models.CharField(
                            choices=[("payload", "Payload"), ("result", "Result only")],
                            max_length=7,
                        ),
                    ),
                    ("tool_id", models.BigIntegerField()),
                    ("passed", models.UUIDField()),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("content", "tool_id"), name="calls_one_progress"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="PostponedErasure",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "content",
                        models.CharField(
                            choices=[("payload", "Payload"), ("result", "Result only")],
                            max_length=7,
                        ),
                    ),
                    ("call_id", models.UUIDField()),
                    ("tried_at", models.DateTimeField(default=django.utils.timezone.now)),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [
                        models.Index(fields=["content", "tried_at"], name="calls_postponed_tried")
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("content", "call_id"), name="calls_one_postponed"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="MoveTally",
                fields=[
                    (
                        "id",
                        models.SmallIntegerField(
                            default=1, editable=False, primary_key=True, serialize=False
                        ),
                    ),
                    ("counts", models.JSONField(default=dict)),
                    ("reached", models.BigIntegerField(default=0)),
                    ("ahead", models.BigIntegerField(default=0)),
                    ("horizon", models.BigIntegerField(default=0)),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("id", 1)), name="calls_one_tally"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="Call",
                fields=[
                    ("id", models.UUIDField(primary_key=True, serialize=False)),
                    (
                        "agent",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="calls",
                            to="accounts.agent",
                        ),
                    ),
                    (
                        "token",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.agenttoken",
                        ),
                    ),
                    (
                        "person",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("toolset", models.CharField(blank=True, max_length=64)),
                    (
                        "server",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="registry.server",
                        ),
                    ),
                    (
                        "tool",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="calls",
                            to="registry.tool",
                        ),
                    ),
                    (
                        "definition",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="registry.definition",
                        ),
                    ),
                    ("tool_name", models.CharField(max_length=200)),
                    ("arguments", models.BinaryField()),
                    ("arguments_digest", models.CharField(max_length=64)),
                    (
                        "amendment",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="calls.amendment",
                        ),
                    ),
                    ("statement", models.TextField(blank=True, db_default="")),
                    ("call_digest", models.CharField(blank=True, db_default="", max_length=64)),
                    (
                        "origin",
                        models.CharField(
                            choices=[
                                ("mcp", "MCP"),
                                ("rest", "REST"),
                                ("console", "Console"),
                                ("command", "Command line"),
                            ],
                            max_length=7,
                        ),
                    ),
                    (
                        "mode",
                        models.CharField(
                            choices=[
                                ("inline", "Short: in the gateway"),
                                ("background", "Long: on a worker"),
                            ],
                            max_length=10,
                        ),
                    ),
                    ("revision", models.CharField(blank=True, max_length=10)),
                    ("client", models.CharField(blank=True, max_length=200)),
                    ("request_key", models.CharField(blank=True, max_length=64)),
                    ("effect", models.CharField(blank=True, max_length=5)),
                    ("rule_id", models.BigIntegerField(null=True)),
                    ("reason", models.TextField(blank=True)),
                    (
                        "state",
                        models.CharField(
                            choices=[
                                ("refused", "Blocked"),
                                ("held", "Pending approval"),
                                ("approved", "Approved"),
                                ("queued", "Queued"),
                                ("running", "Running"),
                                ("succeeded", "Succeeded"),
                                ("tool_error", "Tool error"),
                                ("failed", "Failed"),
                                ("timed_out", "Timed out"),
                                ("cancelled", "Cancelled"),
                                ("unknown", "Outcome unknown"),
                                ("denied", "Denied"),
                                ("expired", "Expired"),
                                ("withdrawn", "Withdrawn"),
                                ("superseded", "Superseded"),
                                ("resolved", "Resolved"),
                            ],
                            max_length=10,
                        ),
                    ),
                    ("seq", models.SmallIntegerField(default=1)),
                    ("asked_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                    ("decide_by", models.DateTimeField(null=True)),
                    ("start_by", models.DateTimeField(null=True)),
                    ("start_after", models.DateTimeField(null=True)),
                    ("sent_at", models.DateTimeField(null=True)),
                    ("finished_at", models.DateTimeField(null=True)),
                    ("clock_stopped_at", models.DateTimeField(null=True)),
                    ("fence", models.IntegerField(default=0)),
                    ("lease_owner", models.CharField(blank=True, db_default="", max_length=64)),
                    ("lease_until", models.DateTimeField(null=True)),
                    ("cancel_asked_at", models.DateTimeField(null=True)),
                    (
                        "cancel_asked_by",
                        models.CharField(blank=True, db_default="", max_length=200),
                    ),
                    ("unheard_at", models.DateTimeField(null=True)),
                    ("progress", models.FloatField(null=True)),
                    ("progress_total", models.FloatField(null=True)),
                    ("progress_rate", models.FloatField(null=True)),
                    ("progress_message", models.TextField(blank=True, db_default="")),
                    ("upstream_task", models.TextField(blank=True, db_default="", editable=False)),
                    (
                        "executed",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("yes", "Executed"),
                                ("no", "Not executed"),
                                ("unknown", "Possibly executed"),
                                ("reported", "As the server reported"),
                            ],
                            db_default="",
                            max_length=8,
                        ),
                    ),
                    ("outcome", models.TextField(blank=True, db_default="")),
                    ("result_size", models.BigIntegerField(null=True)),
                    ("result_digest", models.CharField(blank=True, db_default="", max_length=64)),
                ],
                options={
                    "ordering": ["-id"],
                    "permissions": [
                        ("view_payload", "Can see the arguments and results of every call"),
                        ("view_received", "Can see results as received, before they were cleaned"),
                        ("cancel_call", "Can cancel every call"),
                        ("erase_payload", "Can erase the arguments and results of every call"),
                    ],
                    "default_permissions": ("view",),
                    "indexes": [
                        models.Index(
                            condition=models.Q(("state", "held")),
                            fields=["agent", "tool", "arguments_digest"],
                            name="calls_held",
                        ),
                        models.Index(
                            condition=models.Q(("state", "succeeded"), _negated=True),
                            fields=["state", "id"],
                            name="calls_by_state",
                        ),
                        models.Index(fields=["agent", "id"], name="calls_agent"),
                        models.Index(fields=["tool", "id"], name="calls_tool"),
                        models.Index(
                            condition=models.Q(("effect", "ask")),
                            fields=["tool", "-id"],
                            name="calls_asked",
                        ),
                        models.Index(
                            condition=models.Q(
                                ("executed", "unknown"),
                                ("unheard_at__isnull", False),
                                _connector="OR",
                            ),
                            fields=["tool", "agent", "arguments_digest"],
                            name="calls_unheard",
                        ),
                        models.Index(
                            condition=models.Q(("call_digest", ""), _negated=True),
                            fields=["call_digest"],
                            name="calls_fingerprint",
                            opclasses=["varchar_pattern_ops"],
                        ),
                        models.Index(
                            django.db.models.expressions.CombinedExpression(
                                models.F("finished_at"), "-", models.F("sent_at")
                            ),
                            models.F("id"),
                            condition=models.Q(
                                ("finished_at__isnull", False), ("sent_at__isnull", False)
                            ),
                            name="calls_duration",
                        ),
                        models.Index(
                            condition=models.Q(("request_key", ""), _negated=True),
                            fields=["request_key"],
                            name="calls_request",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="legal_birth",
                            sql=core.triggers.StrictTriggerSql(
                                declare="DECLARE wrong text;",
                                func="\n        SELECT looked.why INTO wrong FROM (SELECT \n            CASE\n            WHEN n.seq <> 1 OR n.state NOT IN ('refused', 'held', 'queued', 'running') THEN 'a call cannot begin like this'\n            WHEN (\n                SELECT true FROM audit_entryrow e\n                WHERE e.call_id = n.id AND e.seq = 1 AND e.to_state = n.state) IS NOT TRUE\n            THEN 'a call without its entry'\n            END AS why FROM new_rows n) looked\n        WHERE looked.why IS NOT NULL LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n    ",
                                hash="96dcc3dda53c31ac1ca50a2dc4f4127be181cb8d",
                                level="STATEMENT",
                                operation="INSERT",
                                pgid="pgtrigger_legal_birth_a1c0e",
                                referencing="REFERENCING NEW TABLE AS new_rows ",
                                table="calls_call",
                                when="AFTER",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="legal_move",
                            sql=core.triggers.StrictTriggerSql(
                                declare="DECLARE wrong text;",
                                func="\n        PERFORM FROM new_rows n LEFT JOIN old_rows o ON o.id = n.id WHERE (\n            n.seq = o.seq + 1 AND o.state || ' ' || n.state IN ('held approved', 'held denied', 'held expired', 'held withdrawn', 'held superseded', 'held unknown', 'approved queued', 'approved unknown', 'queued running', 'queued cancelled', 'queued expired', 'queued superseded', 'queued unknown', 'running succeeded', 'running tool_error', 'running failed', 'running timed_out', 'running cancelled', 'running unknown', 'unknown resolved')\n            AND NOT ((o.id, o.agent_id, o.token_id, o.person_id, o.toolset, o.server_id, o.tool_id, o.definition_id, o.tool_name, o.arguments, o.arguments_digest, o.origin, o.mode, o.revision, o.client, o.request_key, o.effect, o.rule_id, o.reason, o.asked_at, o.amendment_id, o.statement, o.call_digest) IS DISTINCT FROM (n.id, n.agent_id, n.token_id, n.person_id, n.toolset, n.server_id, n.tool_id, n.definition_id, n.tool_name, n.arguments, n.arguments_digest, n.origin, n.mode, n.revision, n.client, n.request_key, n.effect, n.rule_id, n.reason, n.asked_at, n.amendment_id, n.statement, n.call_digest)) AND (\n    SELECT n.result_digest = o.result_digest OR e.result = decode(n.result_digest, 'hex')\n    FROM audit_entryrow e\n    WHERE e.call_id = n.id AND e.seq = n.seq AND e.from_state = o.state AND e.to_state = n.state\n)\n        ) IS NOT TRUE LIMIT 1;\n        IF NOT FOUND THEN\n            RETURN NULL;\n        END IF;\n        \n        SELECT looked.why INTO wrong FROM (SELECT \n            CASE\n            WHEN n.seq = o.seq AND ((o.arguments, o.outcome) IS DISTINCT FROM (n.arguments, n.outcome)) AND (\n    n.arguments = '{}' AND n.upstream_task = '' AND n.progress_message = ''\n    AND to_jsonb(n) - ARRAY['arguments', 'upstream_task', 'progress_message', 'outcome']\n        = to_jsonb(o) - ARRAY['arguments', 'upstream_task', 'progress_message', 'outcome']\n    AND calls_is_being_erased(n.id)\n)\n            THEN NULL\n            WHEN o.id IS NULL OR ((o.id, o.agent_id, o.token_id, o.person_id, o.toolset, o.server_id, o.tool_id, o.definition_id, o.tool_name, o.arguments, o.arguments_digest, o.origin, o.mode, o.revision, o.client, o.request_key, o.effect, o.rule_id, o.reason, o.asked_at) IS DISTINCT FROM (n.id, n.agent_id, n.token_id, n.person_id, n.toolset, n.server_id, n.tool_id, n.definition_id, n.tool_name, n.arguments, n.arguments_digest, n.origin, n.mode, n.revision, n.client, n.request_key, n.effect, n.rule_id, n.reason, n.asked_at))\n            THEN 'what was asked is never changed'\n            WHEN ((o.amendment_id, o.statement, o.call_digest) IS DISTINCT FROM (n.amendment_id, n.statement, n.call_digest)) AND NOT (n.seq = o.seq + 1 AND (\n    SELECT o.state = 'held' AND n.state = 'held'\n        AND a.seq = n.seq AND a.call_digest = n.call_digest\n        AND n.call_digest = encode(sha256(\n            convert_to('countersign call 1' || chr(10) || n.statement, 'UTF8')), 'hex')\n        AND a.arguments_digest = encode(sha256(a.arguments), 'hex')\n        AND n.statement::jsonb\n            = jsonb_set(o.statement::jsonb, '{arguments}', to_jsonb(a.arguments_digest))\n    FROM calls_amendment a WHERE a.id = n.amendment_id AND a.call_id = n.id\n) IS TRUE)\n            THEN 'what is to be sent changes only by an amendment while the call is held'\n            WHEN n.state = o.state AND ((o.executed, o.outcome, o.sent_at, o.finished_at, o.result_size, o.result_digest) IS DISTINCT FROM (n.executed, n.outcome, n.sent_at, n.finished_at, n.result_size, n.result_digest))\n            THEN 'how a call went is written once, by the move that says it'\n            WHEN n.state = o.state AND n.seq = o.seq\n            THEN NULL\n            WHEN NOT (n.seq = o.seq + 1 AND (((o.amendment_id, o.statement, o.call_digest) IS DISTINCT FROM (n.amendment_id, n.statement, n.call_digest)) OR o.state || ' ' || n.state IN ('held approved', 'held denied', 'held expired', 'held withdrawn', 'held superseded', 'held unknown', 'approved queued', 'approved unknown', 'queued running', 'queued cancelled', 'queued expired', 'queued superseded', 'queued unknown', 'running succeeded', 'running tool_error', 'running failed', 'running timed_out', 'running cancelled', 'running unknown', 'running queued', 'unknown resolved'))\n                      AND (o.state <> 'running' OR n.state <> 'queued' OR (\n    n.executed = 'no'\n    OR (SELECT t.safe_to_repeat FROM registry_tool t WHERE t.id = n.tool_id) IS TRUE\n)))\n            THEN 'a call cannot move like this'\n            WHEN (\n    SELECT n.result_digest = o.result_digest OR e.result = decode(n.result_digest, 'hex')\n    FROM audit_entryrow e\n    WHERE e.call_id = n.id AND e.seq = n.seq AND e.from_state = o.state AND e.to_state = n.state\n) IS NOT TRUE\n            THEN 'a move without its entry'\n            END AS why FROM new_rows n LEFT JOIN old_rows o ON o.id = n.id) looked\n        WHERE looked.why IS NOT NULL LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n    ",
                                hash="a3743f4737f2eb53dc46c93f11c776e6a51f7acf",
                                level="STATEMENT",
                                operation="UPDATE",
                                pgid="pgtrigger_legal_move_8f091",
                                referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                                table="calls_call",
                                when="AFTER",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_call rows are never changed or removed';",
                                hash="0c6f8077edc5e3a8d006fc7dbb1c36604965e5b9",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_00a66",
                                table="calls_call",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_call rows are never changed or removed';",
                                hash="cde994f20d60cd150e1f79f167d70b6660d025e8",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_db2dd",
                                table="calls_call",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Result",
                fields=[
                    (
                        "call",
                        models.OneToOneField(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            primary_key=True,
                            related_name="result",
                            serialize=False,
                            to="calls.call",
                        ),
                    ),
                    ("kind", models.CharField(max_length=6)),
                    ("body", models.BinaryField()),
                    ("kept_until", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [
                        models.Index(
                            condition=models.Q(("kept_until__isnull", False)),
                            fields=["kept_until"],
                            name="calls_result_kept",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="no_update",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_result rows are never changed or removed';",
                                hash="12d01f2d053154a28248bf01a0486d4ab7e5ce78",
                                level="STATEMENT",
                                operation="UPDATE",
                                pgid="pgtrigger_no_update_44ec8",
                                table="calls_result",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_result rows are never changed or removed';",
                                hash="9b9ea8388d4885f1e04f105b64e7957e6a82be5b",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_9ce38",
                                table="calls_result",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="result_guard",
                            sql=core.triggers.StrictTriggerSql(
                                declare="DECLARE wrong text;",
                                func="\n        SELECT looked.why INTO wrong FROM (SELECT CASE WHEN (\n    SELECT true FROM audit_entryrow e\n    WHERE e.call_id = n.call_id AND e.seq IS NOT NULL AND e.result IS NOT NULL\n      AND (n.kept_until IS NOT NULL OR e.result = sha256(n.body)) LIMIT 1\n) IS NOT TRUE THEN 'a result that no move of its call brought' END AS why FROM new_rows n) looked\n        WHERE looked.why IS NOT NULL LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n    ",
                                hash="8634c0632b7e2d5d933204ab1025ef28b1d66583",
                                level="STATEMENT",
                                operation="INSERT",
                                pgid="pgtrigger_result_guard_ed28d",
                                referencing="REFERENCING NEW TABLE AS new_rows ",
                                table="calls_result",
                                when="AFTER",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="ResultPart",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "call",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="parts",
                            to="calls.result",
                        ),
                    ),
                    ("number", models.IntegerField()),
                    ("body", models.BinaryField()),
                ],
                options={
                    "ordering": ["number"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(fields=("call", "number"), name="calls_one_part")
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="no_update",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_resultpart rows are never changed or removed';",
                                hash="8f1f9fd04c477fa24050ad0490aa0f668f86313b",
                                level="STATEMENT",
                                operation="UPDATE",
                                pgid="pgtrigger_no_update_3b703",
                                table="calls_resultpart",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_resultpart rows are never changed or removed';",
                                hash="bb8ecadc392bb5fde5179fd3a0b4b713d4e0f8cc",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_10c01",
                                table="calls_resultpart",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="result_guard",
                            sql=core.triggers.StrictTriggerSql(
                                declare="DECLARE wrong text;",
                                func="\n        SELECT looked.why INTO wrong FROM (SELECT CASE WHEN (SELECT c.state = 'running' FROM calls_call c WHERE c.id = n.call_id) IS NOT TRUE THEN 'a part of a result, of a call that does not run' END AS why FROM new_rows n) looked\n        WHERE looked.why IS NOT NULL LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n    ",
                                hash="79be245dfc86ecdd0feb6358f57b763a6355308c",
                                level="STATEMENT",
                                operation="INSERT",
                                pgid="pgtrigger_result_guard_bcaa6",
                                referencing="REFERENCING NEW TABLE AS new_rows ",
                                table="calls_resultpart",
                                when="AFTER",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="ReceivedResult",
                fields=[
                    (
                        "call",
                        models.OneToOneField(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            primary_key=True,
                            related_name="+",
                            serialize=False,
                            to="calls.call",
                        ),
                    ),
                    ("sealed", models.BinaryField()),
                    ("kept_until", models.DateTimeField()),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["kept_until"], name="calls_received_kept")],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="fixed",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.call_id, NEW.kept_until) IS DISTINCT FROM ROW(OLD.call_id, OLD.kept_until) THEN\n                RAISE EXCEPTION 'call_id, kept_until: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="bcba6246be91b2ed12522e3d4b9f9ae2d4d2f2cb",
                                operation="UPDATE",
                                pgid="pgtrigger_fixed_396cb",
                                table="calls_receivedresult",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_receivedresult rows are never changed or removed';",
                                hash="f6d9ee93183a0f78716606520f242d5ecfef1f22",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_d36d9",
                                table="calls_receivedresult",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="result_guard",
                            sql=core.triggers.StrictTriggerSql(
                                declare="DECLARE wrong text;",
                                func="\n        SELECT looked.why INTO wrong FROM (SELECT CASE WHEN (SELECT c.state = 'running' FROM calls_call c WHERE c.id = n.call_id) IS NOT TRUE THEN 'a received result, of a call that does not run' END AS why FROM new_rows n) looked\n        WHERE looked.why IS NOT NULL LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n    ",
                                hash="c0ebec239b92438b122217f128d60fdcd6f12999",
                                level="STATEMENT",
                                operation="INSERT",
                                pgid="pgtrigger_result_guard_81bea",
                                referencing="REFERENCING NEW TABLE AS new_rows ",
                                table="calls_receivedresult",
                                when="AFTER",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="LateReply",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "call",
                        models.ForeignKey(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="late_replies",
                            to="calls.call",
                        ),
                    ),
                    ("fence", models.IntegerField()),
                    (
                        "state",
                        models.CharField(
                            choices=[
                                ("refused", "Blocked"),
                                ("held", "Pending approval"),
                                ("approved", "Approved"),
                                ("queued", "Queued"),
                                ("running", "Running"),
                                ("succeeded", "Succeeded"),
                                ("tool_error", "Tool error"),
                                ("failed", "Failed"),
                                ("timed_out", "Timed out"),
                                ("cancelled", "Cancelled"),
                                ("unknown", "Outcome unknown"),
                                ("denied", "Denied"),
                                ("expired", "Expired"),
                                ("withdrawn", "Withdrawn"),
                                ("superseded", "Superseded"),
                                ("resolved", "Resolved"),
                            ],
                            max_length=10,
                        ),
                    ),
                    ("sentence", models.TextField(blank=True)),
                    (
                        "executed",
                        models.CharField(
                            choices=[
                                ("yes", "Executed"),
                                ("no", "Not executed"),
                                ("unknown", "Possibly executed"),
                                ("reported", "As the server reported"),
                            ],
                            max_length=8,
                        ),
                    ),
                    ("kind", models.CharField(blank=True, max_length=6)),
                    ("body", models.BinaryField()),
                    ("digest", models.CharField(blank=True, max_length=64)),
                    ("received_at", models.DateTimeField()),
                    ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "ordering": ["id"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("call", "fence"), name="calls_one_late_reply"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="only_erased",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF (to_jsonb(NEW) - ARRAY['sentence', 'body'] = to_jsonb(OLD) - ARRAY['sentence', 'body'] AND NEW.sentence = '' AND NEW.body = '' AND calls_is_being_erased(OLD.call_id)) IS NOT TRUE THEN\n            RAISE EXCEPTION 'calls_latereply rows are never changed or removed';\n        END IF;\n        RETURN NEW;\n        ",
                                hash="0e88ab5fb099e1cbf4fdafbb697cf87b733897c2",
                                operation="UPDATE",
                                pgid="pgtrigger_only_erased_66873",
                                table="calls_latereply",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_latereply rows are never changed or removed';",
                                hash="98b7bcd6649ca21d223dce8196c0e35ed563614b",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_382bc",
                                table="calls_latereply",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_latereply rows are never changed or removed';",
                                hash="5ecef95cac8a9b3358e51c95eca14e099a443a31",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_ed99f",
                                table="calls_latereply",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="LogLine",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "call",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="log_lines",
                            to="calls.call",
                        ),
                    ),
                    ("fence", models.IntegerField()),
                    ("number", models.IntegerField()),
                    ("level", models.CharField(blank=True, max_length=20)),
                    ("logger", models.CharField(blank=True, max_length=100)),
                    ("text", models.TextField()),
                    ("structured", models.BooleanField(db_default=False)),
                    ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "ordering": ["fence", "number"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("call", "fence", "number"), name="calls_one_log_line"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="only_erased",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF (to_jsonb(NEW) - ARRAY['logger', 'text'] = to_jsonb(OLD) - ARRAY['logger', 'text'] AND NEW.logger = '' AND NEW.text = '' AND calls_is_being_erased(OLD.call_id)) IS NOT TRUE THEN\n            RAISE EXCEPTION 'calls_logline rows are never changed or removed';\n        END IF;\n        RETURN NEW;\n        ",
                                hash="86ac15556c36bb7fc474d02621200d354ca25498",
                                operation="UPDATE",
                                pgid="pgtrigger_only_erased_8f846",
                                table="calls_logline",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_logline rows are never changed or removed';",
                                hash="18bf09bab0a1c6b3f994b7352b8ecc638e47f68f",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_f2424",
                                table="calls_logline",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_logline rows are never changed or removed';",
                                hash="5617d49a6e0c6399388f2cc6080672a44f1d82bd",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_ef0fd",
                                table="calls_logline",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Input",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "call",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="inputs",
                            to="calls.call",
                        ),
                    ),
                    ("round", models.IntegerField(db_default=0)),
                    ("key", models.CharField(max_length=200)),
                    ("request", models.TextField()),
                    ("message", models.TextField(blank=True)),
                    ("response", models.TextField(blank=True, db_default="")),
                    ("is_error", models.BooleanField(db_default=False)),
                    ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                    ("answered_at", models.DateTimeField(null=True)),
                ],
                options={
                    "ordering": ["id"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("call", "round", "key"), name="calls_one_input"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_input rows are never changed or removed';",
                                hash="297db0ccdc23ca4d953a4d92036c796b01a80ed1",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_1db30",
                                table="calls_input",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_input rows are never changed or removed';",
                                hash="dabe35fa74afd0b07ef924975ec4aa673085991c",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_83663",
                                table="calls_input",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="ListedTask",
                fields=[
                    (
                        "call",
                        models.OneToOneField(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            primary_key=True,
                            related_name="+",
                            serialize=False,
                            to="calls.call",
                        ),
                    ),
                    ("agent_id", models.BigIntegerField()),
                    (
                        "listed_at",
                        models.DateTimeField(db_default=audit.models.entries.ClockTime()),
                    ),
                    ("cancelled_at", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [
                        models.Index(fields=["agent_id", "-call"], name="calls_listedtask_agent"),
                        models.Index(fields=["listed_at"], name="calls_listedtask_old"),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Link",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "call",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="links",
                            to="calls.call",
                        ),
                    ),
                    (
                        "agent",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.agent",
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="registry.server",
                        ),
                    ),
                    ("uri_digest", models.CharField(max_length=64)),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("agent", "uri_digest", "server"), name="calls_one_link"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="no_update",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_link rows are never changed or removed';",
                                hash="a62f5451f82f239c7585e53c288c4abb7ba25b1a",
                                level="STATEMENT",
                                operation="UPDATE",
                                pgid="pgtrigger_no_update_b4408",
                                table="calls_link",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_link rows are never changed or removed';",
                                hash="1b296ba1485c0326eecc8b44295ad4da4a5c64cc",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_9d54a",
                                table="calls_link",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_link rows are never changed or removed';",
                                hash="255150fa1420c3f648341ee0c2eec428e449cd42",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_f6fc8",
                                table="calls_link",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Amendment",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "call",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="amendments",
                            to="calls.call",
                        ),
                    ),
                    ("seq", models.SmallIntegerField()),
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("arguments", models.BinaryField()),
                    ("arguments_digest", models.CharField(max_length=64)),
                    ("call_digest", models.CharField(max_length=64)),
                    ("note", models.TextField(blank=True)),
                    ("private", models.BooleanField(default=False)),
                    ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "ordering": ["seq"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("call", "seq"), name="calls_one_amendment_a_move"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="only_erased",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF (to_jsonb(NEW) - ARRAY['arguments', 'note'] = to_jsonb(OLD) - ARRAY['arguments', 'note'] AND NEW.arguments = '{}' AND NEW.note = '' AND calls_is_being_erased(OLD.call_id)) IS NOT TRUE THEN\n            RAISE EXCEPTION 'calls_amendment rows are never changed or removed';\n        END IF;\n        RETURN NEW;\n        ",
                                hash="392f0c81ec2b8b083a148147e715a24086e9cde5",
                                operation="UPDATE",
                                pgid="pgtrigger_only_erased_3233a",
                                table="calls_amendment",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_amendment rows are never changed or removed';",
                                hash="144ea5d5f34a08407174997c570a001160d56754",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_87fb9",
                                table="calls_amendment",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_amendment rows are never changed or removed';",
                                hash="ece4afe8d3ed9a9c453d6f8374a6a150d473f67e",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_e74c0",
                                table="calls_amendment",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Rerun",
                fields=[
                    (
                        "call",
                        models.OneToOneField(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            primary_key=True,
                            related_name="rerun",
                            serialize=False,
                            to="calls.call",
                        ),
                    ),
                    (
                        "again",
                        models.ForeignKey(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="reruns_of",
                            to="calls.call",
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
                ],
                options={
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="no_update",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_rerun rows are never changed or removed';",
                                hash="03182293e9dd4b8d529df61c57f32165085a47a6",
                                level="STATEMENT",
                                operation="UPDATE",
                                pgid="pgtrigger_no_update_e69f0",
                                table="calls_rerun",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_rerun rows are never changed or removed';",
                                hash="f1ea1c07a58886cb4a179be8f42299c11fa99ae4",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_ce443",
                                table="calls_rerun",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'calls_rerun rows are never changed or removed';",
                                hash="0cbeec875fd854ae3ea7e6fbffe0d1e62901fe74",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_dc09f",
                                table="calls_rerun",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
        ),
        run_file("calls/sql/alike.sql"),
        run_file("calls/sql/limits.sql"),
        run_file("calls/sql/erasing.sql"),
    ]

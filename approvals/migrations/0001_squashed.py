import datetime

import django.db.models.deletion
import django.db.models.expressions
import django.utils.timezone
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
        ("approvals", "0001_initial"),
        ("approvals", "0002_not_ones_own"),
        ("approvals", "0003_votes_that_fall"),
        ("approvals", "0004_counting_votes"),
        ("approvals", "0005_editors"),
        ("approvals", "0006_proven_votes"),
        ("approvals", "0007_grants"),
        ("approvals", "0008_frozen_clocks_and_talk"),
        ("approvals", "0009_search_paths"),
        ("approvals", "0010_every_rule_is_satisfied"),
        ("approvals", "0011_parties"),
        ("approvals", "0012_single_person"),
        ("approvals", "0013_people_by_any_name"),
    ]

    dependencies = [
        ("audit", "0001_squashed"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("core", "0001_squashed"),
        ("accounts", "0001_squashed"),
        ("calls", "0001_squashed"),
        ("registry", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "call",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="approval",
                        serialize=False,
                        to="calls.call",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Pending approval"),
                            ("approved", "Approved"),
                            ("denied", "Denied"),
                            ("expired", "Expired"),
                            ("withdrawn", "Withdrawn"),
                            ("superseded", "Superseded"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField()),
                ("asked_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ("decide_by", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
                ("thresholds", models.JSONField()),
                ("start_within_s", models.PositiveIntegerField(null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["asked_at"],
                "permissions": [("decide_approval", "Can approve and refuse held calls")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("comment", "Comment"),
                            ("question", "Question to the agent"),
                            ("answer", "Answer"),
                        ],
                        default="comment",
                        max_length=8,
                    ),
                ),
                ("text", models.TextField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.agent",
                    ),
                ),
                (
                    "approval",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comments",
                        to="approvals.approval",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("arguments", models.BinaryField()),
                ("bounds", models.JSONField(default=list)),
                ("thresholds", models.JSONField()),
                (
                    "step_up",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "signed in"),
                            ("totp", "passkey or one-time code"),
                            ("passkey", "passkey"),
                        ],
                        default="",
                        max_length=7,
                    ),
                ),
                ("max_uses", models.PositiveIntegerField()),
                ("uses", models.PositiveIntegerField(default=0)),
                ("sum_path", models.JSONField(null=True)),
                ("max_sum", models.DecimalField(decimal_places=18, max_digits=40, null=True)),
                ("summed", models.DecimalField(decimal_places=18, default=0, max_digits=40)),
                ("days", models.JSONField(default=list)),
                ("start_minute", models.PositiveSmallIntegerField(default=0)),
                ("end_minute", models.PositiveSmallIntegerField(default=1440)),
                ("time_zone", models.CharField(default="UTC", max_length=64)),
                ("note", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ("expires_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants",
                        to="accounts.agent",
                    ),
                ),
                (
                    "call",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants",
                        to="calls.call",
                    ),
                ),
                (
                    "definition",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.definition",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="grants",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "revoked_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.tool",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "permissions": [("revoke_grant", "Can revoke everybody's standing grants")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="GrantUse",
            fields=[
                ("call_id", models.UUIDField(primary_key=True, serialize=False)),
                ("amount", models.DecimalField(decimal_places=18, max_digits=40)),
                ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                (
                    "grant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="uses_made",
                        to="approvals.grant",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Vote",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("approve", models.BooleanField()),
                ("reason", models.TextField(blank=True)),
                ("seen_digest", models.CharField(max_length=64)),
                (
                    "step_up",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "signed in"),
                            ("totp", "passkey or one-time code"),
                            ("passkey", "passkey"),
                        ],
                        db_default="",
                        default="",
                        max_length=7,
                    ),
                ),
                (
                    "single_person",
                    models.BooleanField(db_default=False, default=False, editable=False),
                ),
                ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("fallen_at", models.DateTimeField(null=True)),
                (
                    "fallen_why",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("taken_back", "Taken back"),
                            ("edited", "The arguments were edited afterwards"),
                        ],
                        db_default="",
                        default="",
                        max_length=10,
                    ),
                ),
                (
                    "approval",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="votes",
                        to="approvals.approval",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="votes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "proof",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="vote",
                        to="accounts.proof",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["asked_at"],
                name="approvals_waiting",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="approval",
            trigger=pgtrigger.compiler.Trigger(
                name="decided_by_votes",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        IF OLD.state <> 'waiting' THEN\n            RAISE EXCEPTION 'what was decided stays decided';\n        ELSIF (NEW.call_id, NEW.asked_at) IS DISTINCT FROM (OLD.call_id, OLD.asked_at) THEN\n            RAISE EXCEPTION 'what was asked is never changed';\n        ELSIF NEW.thresholds IS DISTINCT FROM OLD.thresholds AND EXISTS (\n            SELECT FROM approvals_vote v\n            WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL)\n        THEN\n            RAISE EXCEPTION 'votes stand: who decides is not changed under them';\n        ELSIF NEW.state IN ('approved', 'denied') AND (\n            approvals_decided(NEW.call_id, NEW.thresholds) <> NEW.state OR NOT EXISTS (\n                SELECT FROM approvals_vote v\n                WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL\n                  AND v.person_id = NEW.decided_by_id AND v.approve = (NEW.state = 'approved')))\n        THEN\n            RAISE EXCEPTION 'the votes do not say so';\n        ELSIF NEW.state = 'expired' AND OLD.decide_by > clock_timestamp() THEN\n            RAISE EXCEPTION 'there is still time to decide';\n        END IF;\n        RETURN NEW;\n    ",
                    hash="dbc27ea7ab1f0a97a99f9d074aadfc5d16f01b44",
                    operation="UPDATE",
                    pgid="pgtrigger_decided_by_votes_64240",
                    table="approvals_approval",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="comment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("agent__isnull", False), ("kind", "answer"), ("person", None)),
                    models.Q(
                        ("agent", None),
                        ("kind__in", ["comment", "question"]),
                        ("person__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="approvals_comment_by_one",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="comment",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_comment rows are never changed or removed';",
                    hash="842161e0e169ef1a9204d545ddb892617810b288",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_76180",
                    table="approvals_comment",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="comment",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_comment rows are never changed or removed';",
                    hash="06ee00d5305f3a0205872d1810652e5e06575f15",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_7a8ac",
                    table="approvals_comment",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="comment",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_comment rows are never changed or removed';",
                    hash="63cb21d28db34f6bc31cba37d2aef31ede505405",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_a718c",
                    table="approvals_comment",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="comment",
            trigger=pgtrigger.compiler.Trigger(
                name="legal_comment",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        IF (SELECT a.state FROM approvals_approval a WHERE a.call_id = NEW.approval_id)\n            IS DISTINCT FROM 'waiting'\n        THEN\n            RAISE EXCEPTION 'nobody decides this call any more';\n        ELSIF NEW.kind = 'answer' AND NEW.agent_id IS DISTINCT FROM\n            (SELECT c.agent_id FROM calls_call c WHERE c.id = NEW.approval_id)\n        THEN\n            RAISE EXCEPTION 'only the agent of a call answers for it';\n        ELSIF NEW.kind = 'question' AND NOT approvals_may_decide(NEW.person_id) THEN\n            RAISE EXCEPTION 'only those who decide ask';\n        ELSIF NEW.kind = 'comment' AND NOT approvals_may_decide(NEW.person_id) AND NOT (\n            NEW.person_id IN (SELECT x.person_id FROM approvals_excluded(NEW.approval_id) x)\n            AND (SELECT u.is_active FROM accounts_user u WHERE u.id = NEW.person_id))\n        THEN\n            RAISE EXCEPTION 'this person has no word on this call';\n        END IF;\n        NEW.at = clock_timestamp();\n        RETURN NEW;\n    ",
                    hash="fe3f78ec2c44921f79c4c46646cb65512e56680e",
                    operation="INSERT",
                    pgid="pgtrigger_legal_comment_d985e",
                    table="approvals_comment",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="grant",
            index=models.Index(fields=["agent", "definition"], name="approvals_grant_agent"),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("expires_at__gt", models.F("created_at")),
                    (
                        "expires_at__lte",
                        django.db.models.expressions.CombinedExpression(
                            models.F("created_at"), "+", models.Value(datetime.timedelta(days=30))
                        ),
                    ),
                ),
                name="approvals_grant_ends",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(("uses__lte", models.F("max_uses"))), name="approvals_grant_uses"
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("max_sum", None), ("sum_path", None)),
                    models.Q(
                        ("max_sum__isnull", False),
                        ("sum_path__isnull", False),
                        ("summed__lte", models.F("max_sum")),
                    ),
                    _connector="OR",
                ),
                name="approvals_grant_sum",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grant",
            trigger=pgtrigger.compiler.Trigger(
                name="legal_grant",
                sql=core.triggers.StrictTriggerSql(
                    declare="DECLARE made_from calls_call;",
                    func="\n        SELECT * INTO made_from FROM calls_call WHERE id = NEW.call_id;\n        IF (NEW.agent_id, NEW.tool_id, NEW.definition_id) IS DISTINCT FROM\n            (made_from.agent_id, made_from.tool_id, made_from.definition_id)\n        THEN\n            RAISE EXCEPTION 'a grant is for the agent and the definition that were approved';\n        ELSIF (SELECT array_agg(v.person_id) FROM approvals_vote v\n            JOIN approvals_approval a ON a.call_id = v.approval_id AND a.state = 'approved'\n            WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL AND v.approve)\n            IS DISTINCT FROM ARRAY[NEW.owner_id]\n        THEN\n            RAISE EXCEPTION 'a grant is made by the one person who approved the call';\n        ELSIF NEW.owner_id IN (SELECT x.person_id FROM approvals_excluded(NEW.call_id) x)\n            OR NEW.owner_id IN (SELECT p.person_id FROM approvals_parties(NEW.call_id) p)\n            OR NOT approvals_may_decide(NEW.owner_id)\n        THEN\n            RAISE EXCEPTION 'this person may not decide';\n        ELSIF NEW.uses <> 0 OR NEW.summed <> 0 OR NEW.revoked_at IS NOT NULL THEN\n            RAISE EXCEPTION 'a grant begins unused';\n        END IF;\n        NEW.created_at = clock_timestamp();\n        RETURN NEW;\n    ",
                    hash="46b7d917e9752bd75f2fe729f62671b9f2b09262",
                    operation="INSERT",
                    pgid="pgtrigger_legal_grant_03cfd",
                    table="approvals_grant",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grant",
            trigger=pgtrigger.compiler.Trigger(
                name="only_used",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        IF (to_jsonb(NEW) - '{uses,summed,last_used_at,revoked_at,revoked_by_id}'::text[])\n            IS DISTINCT FROM\n            (to_jsonb(OLD) - '{uses,summed,last_used_at,revoked_at,revoked_by_id}'::text[])\n        THEN\n            RAISE EXCEPTION 'what was granted is never changed';\n        ELSIF NEW.uses NOT IN (OLD.uses, OLD.uses + 1) OR NEW.summed < OLD.summed THEN\n            RAISE EXCEPTION 'uses are counted one by one, and never taken back';\n        ELSIF OLD.revoked_at IS NOT NULL THEN\n            RAISE EXCEPTION 'a revoked grant stays revoked, and is not used';\n        END IF;\n        RETURN NEW;\n    ",
                    hash="441961c961499132b9f59dcca36b96f08b23eed6",
                    operation="UPDATE",
                    pgid="pgtrigger_only_used_6af3f",
                    table="approvals_grant",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grant",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_grant rows are never changed or removed';",
                    hash="64c7b34888d929f4d4fdc3f9b58b170c716e790f",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_f4f59",
                    table="approvals_grant",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grant",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_grant rows are never changed or removed';",
                    hash="c441bb2d69923062bdff05d974e502c241d72971",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_e6d8f",
                    table="approvals_grant",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grant",
            trigger=pgtrigger.compiler.Trigger(
                name="configuration",
                sql=core.triggers.StrictTriggerSql(
                    func="PERFORM core_configuration_changed(); RETURN NULL;",
                    hash="449e222f3cfc671a713c9bab94a06ce26df9c0e4",
                    level="STATEMENT",
                    operation='INSERT OR DELETE OR UPDATE OF "revoked_at"',
                    pgid="pgtrigger_configuration_549f1",
                    table="approvals_grant",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grantuse",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_grantuse rows are never changed or removed';",
                    hash="95b23e40b48c618bcfb3ffdbfb618d58ff6e7216",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_18a70",
                    table="approvals_grantuse",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grantuse",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_grantuse rows are never changed or removed';",
                    hash="2fac6c01a371de23b26c6621c4d12072d3180340",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_b0ab3",
                    table="approvals_grantuse",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="grantuse",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_grantuse rows are never changed or removed';",
                    hash="7b2c10d6dbccdfc075332e485cdabe5447d6a26c",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_7e2af",
                    table="approvals_grantuse",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="vote",
            constraint=models.UniqueConstraint(
                condition=models.Q(("fallen_at", None)),
                fields=("approval", "person"),
                name="approvals_one_vote_each",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vote",
            trigger=pgtrigger.compiler.Trigger(
                name="legal_vote",
                sql=core.triggers.StrictTriggerSql(
                    declare="DECLARE asked approvals_approval;",
                    func="\n        -- Voters take turns here: each sees the votes before.\n        SELECT * INTO asked FROM approvals_approval WHERE call_id = NEW.approval_id FOR UPDATE;\n        IF asked.state IS DISTINCT FROM 'waiting' OR asked.decide_by <= clock_timestamp() AND\n            (SELECT c.clock_stopped_at FROM calls_call c WHERE c.id = NEW.approval_id) IS NULL\n        THEN\n            RAISE EXCEPTION 'nobody decides this call any more';\n        ELSIF NEW.fallen_at IS NOT NULL OR NEW.fallen_why <> '' THEN\n            RAISE EXCEPTION 'a vote begins by standing';\n        ELSIF NEW.person_id IN (SELECT x.person_id FROM approvals_excluded(NEW.approval_id) x) THEN\n            RAISE EXCEPTION 'nobody decides on calls that they have a part in, or that they edited';\n        ELSIF NOT approvals_may_decide(NEW.person_id) THEN\n            RAISE EXCEPTION 'this person may not decide';\n        ELSIF NOT (\n            SELECT bool_or(approvals_is_from(NEW.person_id, t.t ->> 'from'))\n            FROM jsonb_array_elements(asked.thresholds) t (t))\n        THEN\n            RAISE EXCEPTION 'the rule asks other people';\n        ELSIF NEW.seen_digest = '' OR NEW.seen_digest IS DISTINCT FROM\n            (SELECT c.call_digest FROM calls_call c WHERE c.id = NEW.approval_id)\n        THEN\n            RAISE EXCEPTION 'a vote on something else than what is held';\n        END IF;\n        -- Not excluded although they have a part in it: there is nobody else.\n        NEW.single_person = NEW.person_id IN\n            (SELECT p.person_id FROM approvals_parties(NEW.approval_id) p);\n        NEW.at = clock_timestamp();\n        RETURN NEW;\n    ",
                    hash="c8e65e5bba04295f36c08f2e36ad259aec26bc06",
                    operation="INSERT",
                    pgid="pgtrigger_legal_vote_f722e",
                    table="approvals_vote",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vote",
            trigger=pgtrigger.compiler.Trigger(
                name="proven_vote",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        IF (NEW.step_up <> '' OR NEW.proof_id IS NOT NULL) AND NOT EXISTS (\n            SELECT FROM accounts_proof p\n            WHERE p.id = NEW.proof_id AND p.person_id = NEW.person_id AND p.method = NEW.step_up\n              AND starts_with(p.statement, format(\n                E'countersign vote 1\\nvote: %s\\nperson: %s\\ncall: %s\\ndigest: %s\\n',\n                CASE WHEN NEW.approve THEN 'yes' ELSE 'no' END,\n                NEW.person_id, NEW.approval_id, NEW.seen_digest)))\n        THEN\n            RAISE EXCEPTION 'a confirmed vote without its proof';\n        END IF;\n        RETURN NEW;\n    ",
                    hash="9640934d4a932f2af71e3afdd391a0f329bb1699",
                    operation="INSERT",
                    pgid="pgtrigger_proven_vote_05451",
                    table="approvals_vote",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vote",
            trigger=pgtrigger.compiler.Trigger(
                name="only_falls",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        IF OLD.fallen_at IS NOT NULL OR NEW.fallen_at IS NULL OR NEW.fallen_why = '' OR\n            (to_jsonb(NEW) - '{fallen_at,fallen_why}'::text[])\n            IS DISTINCT FROM (to_jsonb(OLD) - '{fallen_at,fallen_why}'::text[])\n        THEN\n            RAISE EXCEPTION 'votes are never changed, only taken back';\n        ELSIF (SELECT state FROM approvals_approval WHERE call_id = OLD.approval_id FOR UPDATE)\n            IS DISTINCT FROM 'waiting'\n        THEN\n            RAISE EXCEPTION 'nobody decides this call any more';\n        END IF;\n        NEW.fallen_at = clock_timestamp();\n        RETURN NEW;\n    ",
                    hash="603fbbd14ea6fee7152fd15973a023b02cfda4e2",
                    operation="UPDATE",
                    pgid="pgtrigger_only_falls_0142b",
                    table="approvals_vote",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vote",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_vote rows are never changed or removed';",
                    hash="e00668b4e46a6ca9e12622197727dc619ad76a68",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_c3c6f",
                    table="approvals_vote",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vote",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'approvals_vote rows are never changed or removed';",
                    hash="6573fc73200d5b060fe85217aa0489ec3e501f4f",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_9b5d8",
                    table="approvals_vote",
                    when="BEFORE",
                ),
            ),
        ),
        run_file("approvals/sql/eligibility.sql"),
        run_file("approvals/sql/counting_votes.sql"),
        run_file("approvals/sql/single_person_mode.sql"),
    ]

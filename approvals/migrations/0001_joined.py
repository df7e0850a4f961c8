import datetime

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.utils.timezone
import pgtrigger.compiler
from django.conf import settings
from django.db import migrations, models

import audit.models.entries
import core.ids
import core.triggers
from core.create_models import CreateModels
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
        ("approvals", "0001_squashed"),
        ("approvals", "0002_inviters_have_a_part"),
        ("approvals", "0003_no_constraint_on_calls"),
        ("approvals", "0004_denies_at"),
        ("approvals", "0005_queue_views"),
        ("approvals", "0006_voided_votes"),
        ("approvals", "0007_provider_proofs"),
        ("approvals", "0008_decision_keys"),
        ("approvals", "0009_delegations"),
        ("approvals", "0010_delegates_are_asked_too"),
        ("approvals", "0011_votes_share_a_proof"),
        ("approvals", "0012_break_glass"),
        ("approvals", "0013_withdrawn_decision_keys"),
        ("approvals", "0014_card_views"),
        ("approvals", "0015_break_glass_second_accounts"),
        ("approvals", "0016_widened"),
        ("approvals", "0017_shows_arguments"),
        ("approvals", "0018_erasing_triggers"),
        ("approvals", "0019_erasing_results"),
    ]

    dependencies = [
        ("accounts", "0001_joined"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("calls", "0002_joined_months"),
        ("registry", "0001_joined"),
    ]

    operations = [
        CreateModels(
            migrations.CreateModel(
                name="Approval",
                fields=[
                    (
                        "call",
                        models.OneToOneField(
                            db_constraint=False,
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
                    ("denies_at", models.DateTimeField(null=True)),
                    (
                        "decided_by",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("thresholds", models.JSONField()),
                    ("widened_min", models.PositiveSmallIntegerField(db_default=0, default=0)),
                    ("widens_at", models.DateTimeField(null=True)),
                    ("start_within_s", models.PositiveIntegerField(null=True)),
                    ("shows_arguments", models.BooleanField(db_default=False, default=False)),
                ],
                options={
                    "ordering": ["asked_at"],
                    "permissions": [
                        ("decide_approval", "Can approve and refuse held calls"),
                        ("break_glass", "Can let one held call run alone"),
                    ],
                    "default_permissions": ("view",),
                    "indexes": [
                        models.Index(
                            condition=models.Q(("state", "waiting")),
                            fields=["asked_at"],
                            name="approvals_waiting",
                        ),
                        models.Index(
                            condition=models.Q(("denies_at__isnull", False), ("state", "waiting")),
                            fields=["denies_at"],
                            name="approvals_denies",
                        ),
                        models.Index(
                            condition=models.Q(("state", "waiting"), ("widens_at__isnull", False)),
                            fields=["widens_at"],
                            name="approvals_widens",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="decided_by_votes",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF OLD.state <> 'waiting' THEN\n            RAISE EXCEPTION 'what was decided stays decided';\n        ELSIF (NEW.call_id, NEW.asked_at) IS DISTINCT FROM (OLD.call_id, OLD.asked_at) THEN\n            RAISE EXCEPTION 'what was asked is never changed';\n        ELSIF NEW.thresholds IS DISTINCT FROM OLD.thresholds AND EXISTS (\n            SELECT FROM approvals_vote v\n            WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL)\n        THEN\n            RAISE EXCEPTION 'votes stand: who decides is not changed under them';\n        ELSIF NEW.widened_min <> OLD.widened_min AND (\n            NEW.state <> 'waiting' OR NEW.widened_min < OLD.widened_min\n            OR OLD.widens_at IS NULL OR OLD.widens_at > clock_timestamp()\n            OR OLD.asked_at + make_interval(mins => NEW.widened_min) > clock_timestamp())\n        THEN\n            RAISE EXCEPTION 'others may decide only after the time that the rule says';\n        ELSIF NEW.state IN ('approved', 'denied') AND (\n            approvals_decided(NEW.call_id, NEW.thresholds) <> NEW.state OR NOT EXISTS (\n                SELECT FROM approvals_vote v\n                WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL\n                  AND v.person_id = NEW.decided_by_id AND v.approve = (NEW.state = 'approved')))\n        THEN\n            RAISE EXCEPTION 'the votes do not say so';\n        ELSIF NEW.state = 'denied' AND OLD.denies_at > clock_timestamp() THEN\n            RAISE EXCEPTION 'its denial can still be taken back';\n        ELSIF NEW.state = 'waiting' AND NEW.denies_at IS DISTINCT FROM OLD.denies_at\n            AND NEW.denies_at IS NOT NULL AND (\n            NEW.denies_at > clock_timestamp() + interval '60 s'\n            OR approvals_decided(NEW.call_id, NEW.thresholds) <> 'denied')\n        THEN\n            RAISE EXCEPTION 'only a denial can be taken back, and for a minute at most';\n        ELSIF NEW.state = 'expired' AND OLD.decide_by > clock_timestamp() THEN\n            RAISE EXCEPTION 'there is still time to decide';\n        END IF;\n        RETURN NEW;\n    ",
                                hash="ad8e2a299035333005c808ca77777d6513815eda",
                                operation="UPDATE",
                                pgid="pgtrigger_decided_by_votes_64240",
                                table="approvals_approval",
                                when="BEFORE",
                            ),
                        )
                    ],
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
                    ("approve", models.BooleanField()),
                    ("reason", models.TextField(blank=True)),
                    ("seen_digest", models.CharField(max_length=64)),
                    (
                        "step_up",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("passkey", "passkey"),
                                ("totp", "one-time code"),
                                ("oidc", "identity provider"),
                            ],
                            db_default="",
                            default="",
                            max_length=7,
                        ),
                    ),
                    (
                        "proof",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="votes",
                            to="accounts.proof",
                        ),
                    ),
                    (
                        "single_person",
                        models.BooleanField(db_default=False, default=False, editable=False),
                    ),
                    (
                        "for_people",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.BigIntegerField(),
                            db_default=[],
                            default=list,
                            editable=False,
                            size=None,
                        ),
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
                                ("disabled", "The account was disabled"),
                            ],
                            db_default="",
                            default="",
                            max_length=10,
                        ),
                    ),
                ],
                options={
                    "ordering": ["id"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            condition=models.Q(("fallen_at", None)),
                            fields=("approval", "person"),
                            name="approvals_one_vote_each",
                        ),
                        models.UniqueConstraint(
                            fields=("proof", "approval"), name="approvals_one_vote_a_proof"
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="legal_vote",
                            sql=core.triggers.StrictTriggerSql(
                                declare="DECLARE asked approvals_approval;",
                                func="\n        -- Voters take turns here: each sees the votes before.\n        SELECT * INTO asked FROM approvals_approval WHERE call_id = NEW.approval_id FOR UPDATE;\n        IF asked.state IS DISTINCT FROM 'waiting' OR asked.decide_by <= clock_timestamp() AND\n            (SELECT c.clock_stopped_at FROM calls_call c WHERE c.id = NEW.approval_id) IS NULL\n        THEN\n            RAISE EXCEPTION 'nobody decides this call any more';\n        ELSIF NEW.fallen_at IS NOT NULL OR NEW.fallen_why <> '' THEN\n            RAISE EXCEPTION 'a vote begins by standing';\n        ELSIF NEW.person_id IN (SELECT x.person_id FROM approvals_excluded(NEW.approval_id) x) THEN\n            RAISE EXCEPTION 'nobody decides on calls that they have a part in, or that they edited';\n        ELSIF NOT approvals_may_decide(NEW.person_id) THEN\n            RAISE EXCEPTION 'this person may not decide';\n        ELSIF NOT (\n            SELECT bool_or(approvals_is_from(NEW.person_id, t.t ->> 'from'))\n            FROM jsonb_array_elements(asked.thresholds) t (t)\n            WHERE COALESCE((t.t ->> 'after_min')::int, 0) <= asked.widened_min)\n            AND NOT EXISTS (\n                SELECT FROM approvals_breakglass b\n                WHERE b.approval_id = NEW.approval_id AND b.person_id = NEW.person_id\n                  AND b.seen_digest = NEW.seen_digest AND NEW.approve)\n        THEN\n            RAISE EXCEPTION 'the rule asks other people';\n        ELSIF NEW.seen_digest = '' OR NEW.seen_digest IS DISTINCT FROM\n            (SELECT c.call_digest FROM calls_call c WHERE c.id = NEW.approval_id)\n        THEN\n            RAISE EXCEPTION 'a vote on something else than what is held';\n        END IF;\n        -- Not excluded although they have a part in it: there is nobody else.\n        NEW.single_person = NEW.person_id IN\n            (SELECT p.person_id FROM approvals_parties(NEW.approval_id) p);\n        -- In whose place it is given: of those whom no other vote was given for.\n        NEW.for_people = ARRAY(\n            SELECT d.delegator_id FROM approvals_delegations(NEW.approval_id) d\n            WHERE d.delegate_id = NEW.person_id AND NOT EXISTS (\n                SELECT FROM approvals_vote v\n                WHERE v.approval_id = NEW.approval_id AND v.fallen_at IS NULL\n                  AND d.delegator_id = ANY(v.for_people))\n            ORDER BY d.delegator_id);\n        NEW.at = clock_timestamp();\n        RETURN NEW;\n    ",
                                hash="2ef4adb14a4f46d1b45c2504895ee29d70b1707e",
                                operation="INSERT",
                                pgid="pgtrigger_legal_vote_f722e",
                                table="approvals_vote",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="proven_vote",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF (NEW.step_up <> '' OR NEW.proof_id IS NOT NULL) AND NOT EXISTS (\n            SELECT FROM accounts_proof p\n            WHERE p.id = NEW.proof_id AND p.person_id = NEW.person_id AND p.method = NEW.step_up\n              AND (starts_with(p.statement, format(\n                E'countersign vote 1\\nvote: %s\\nperson: %s\\ncall: %s\\ndigest: %s\\n',\n                CASE WHEN NEW.approve THEN 'yes' ELSE 'no' END,\n                NEW.person_id, NEW.approval_id, NEW.seen_digest))\n              -- Lines of several calls stand before the name, so that no name can be one.\n              OR starts_with(p.statement, format(\n                E'countersign votes 1\\nvote: %s\\nperson: %s\\ncall: ',\n                CASE WHEN NEW.approve THEN 'yes' ELSE 'no' END, NEW.person_id))\n              AND strpos(split_part(p.statement, 'name: ', 1), format(\n                E'\\ncall: %s\\ndigest: %s\\n', NEW.approval_id, NEW.seen_digest)) > 0))\n        THEN\n            RAISE EXCEPTION 'a confirmed vote without its proof';\n        END IF;\n        RETURN NEW;\n    ",
                                hash="545a1f0519cc6b5d882625add8f5925c3a3e5bb5",
                                operation="INSERT",
                                pgid="pgtrigger_proven_vote_05451",
                                table="approvals_vote",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="only_falls",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF to_jsonb(NEW) - ARRAY['reason'] = to_jsonb(OLD) - ARRAY['reason'] AND NEW.reason = '' AND calls_is_being_erased(OLD.approval_id) THEN\n            RETURN NEW;\n        ELSIF OLD.fallen_at IS NOT NULL OR NEW.fallen_at IS NULL OR NEW.fallen_why = '' OR\n            (to_jsonb(NEW) - '{fallen_at,fallen_why}'::text[])\n            IS DISTINCT FROM (to_jsonb(OLD) - '{fallen_at,fallen_why}'::text[])\n        THEN\n            RAISE EXCEPTION 'votes are never changed, only taken back';\n        ELSIF (SELECT state FROM approvals_approval WHERE call_id = OLD.approval_id FOR UPDATE)\n            IS DISTINCT FROM 'waiting'\n        THEN\n            RAISE EXCEPTION 'nobody decides this call any more';\n        END IF;\n        NEW.fallen_at = clock_timestamp();\n        RETURN NEW;\n    ",
                                hash="29c761e066a366b0c55f1a8a922feff45c5f9794",
                                operation="UPDATE",
                                pgid="pgtrigger_only_falls_0142b",
                                table="approvals_vote",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
            migrations.CreateModel(
                name="BreakGlass",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "approval",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="break_glass",
                            to="approvals.approval",
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
                    (
                        "second",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("reason", models.TextField()),
                    ("seen_digest", models.CharField(max_length=64)),
                    (
                        "used_at",
                        models.DateTimeField(
                            db_default=audit.models.entries.ClockTime(), editable=False
                        ),
                    ),
                    (
                        "reviewer",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("reviewed_at", models.DateTimeField(null=True)),
                    (
                        "judgement",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("justified", "Justified"),
                                ("not_justified", "Not justified"),
                            ],
                            default="",
                            max_length=13,
                        ),
                    ),
                    ("note", models.TextField(blank=True, default="")),
                ],
                options={
                    "ordering": ["-used_at"],
                    "default_permissions": (),
                    "indexes": [
                        models.Index(
                            condition=models.Q(("reviewed_at", None)),
                            fields=["used_at"],
                            name="approvals_break_glass_open",
                        )
                    ],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("judgement", ""), ("reviewed_at", None), ("reviewer", None)
                                ),
                                models.Q(
                                    ("judgement__gt", ""),
                                    ("reviewed_at__isnull", False),
                                    ("reviewer__isnull", False),
                                ),
                                _connector="OR",
                            ),
                            name="approvals_break_glass_reviewed_whole",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="legal_break_glass",
                            sql=core.triggers.StrictTriggerSql(
                                declare="DECLARE asked approvals_approval;",
                                func="\n        SELECT * INTO asked FROM approvals_approval WHERE call_id = NEW.approval_id FOR UPDATE;\n        IF asked.state IS DISTINCT FROM 'waiting' THEN\n            RAISE EXCEPTION 'nobody decides this call any more';\n        ELSIF NOT approvals_may_break_glass(NEW.person_id) THEN\n            RAISE EXCEPTION 'this person may not break the glass';\n        ELSIF NEW.person_id IN (SELECT p.person_id FROM approvals_involved(NEW.approval_id) p) THEN\n            RAISE EXCEPTION 'nobody breaks the glass for a call that they have a part in';\n        ELSIF NOT approvals_is_second(NEW.second_id, NEW.person_id, NEW.approval_id) THEN\n            RAISE EXCEPTION 'somebody else who decides has to be told';\n        ELSIF NEW.reason = '' OR NEW.reviewed_at IS NOT NULL THEN\n            RAISE EXCEPTION 'it has a reason, and is reviewed afterwards';\n        ELSIF NEW.seen_digest = '' OR NEW.seen_digest IS DISTINCT FROM\n            (SELECT c.call_digest FROM calls_call c WHERE c.id = NEW.approval_id)\n        THEN\n            RAISE EXCEPTION 'it is of something else than what is held';\n        END IF;\n        NEW.used_at = clock_timestamp();\n        RETURN NEW;\n    ",
                                hash="504bb8b58ff5197c3850e27af9846b04e3dc9602",
                                operation="INSERT",
                                pgid="pgtrigger_legal_break_glass_4a162",
                                table="approvals_breakglass",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="reviewed_once",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF OLD.reviewed_at IS NOT NULL OR NEW.reviewed_at IS NULL OR\n            (to_jsonb(NEW) - '{reviewed_at,reviewer_id,judgement,note}'::text[])\n            IS DISTINCT FROM (to_jsonb(OLD) - '{reviewed_at,reviewer_id,judgement,note}'::text[])\n        THEN\n            RAISE EXCEPTION 'a use of break-glass is only reviewed, once';\n        ELSIF NOT approvals_is_second(NEW.reviewer_id, OLD.person_id, OLD.approval_id) THEN\n            RAISE EXCEPTION 'somebody else has to review it';\n        END IF;\n        NEW.reviewed_at = clock_timestamp();\n        RETURN NEW;\n    ",
                                hash="3eb3d284cdfccbe84ae6648916c1c5338d866b1a",
                                operation="UPDATE",
                                pgid="pgtrigger_reviewed_once_8da9a",
                                table="approvals_breakglass",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'approvals_breakglass rows are never changed or removed';",
                                hash="cf4f47690aff13817fe992419a2563ec34328c75",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_f8c07",
                                table="approvals_breakglass",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'approvals_breakglass rows are never changed or removed';",
                                hash="8ad2ad7c5829426334d121f0c594076d17fd3f50",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_63ae8",
                                table="approvals_breakglass",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="CardView",
                fields=[
                    ("id", models.BigAutoField(primary_key=True, serialize=False)),
                    ("call_id", models.UUIDField()),
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["at"], name="approvals_card_view_at")],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("call_id", "person"), name="approvals_card_view_once"
                        )
                    ],
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
                        "approval",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="comments",
                            to="approvals.approval",
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
                    (
                        "person",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "agent",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.agent",
                        ),
                    ),
                    ("text", models.TextField()),
                    ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ],
                options={
                    "ordering": ["id"],
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("agent__isnull", False), ("kind", "answer"), ("person", None)
                                ),
                                models.Q(
                                    ("agent", None),
                                    ("kind__in", ["comment", "question"]),
                                    ("person__isnull", False),
                                ),
                                _connector="OR",
                            ),
                            name="approvals_comment_by_one",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="only_erased",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF (to_jsonb(NEW) - ARRAY['text'] = to_jsonb(OLD) - ARRAY['text'] AND NEW.text = '' AND calls_is_being_erased(OLD.approval_id)) IS NOT TRUE THEN\n            RAISE EXCEPTION 'approvals_comment rows are never changed or removed';\n        END IF;\n        RETURN NEW;\n        ",
                                hash="159524eea0dbc3ef3d145a3edca79634bb1ee1c9",
                                operation="UPDATE",
                                pgid="pgtrigger_only_erased_a865e",
                                table="approvals_comment",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
            migrations.CreateModel(
                name="DecisionKey",
                fields=[
                    (
                        "id",
                        models.UUIDField(
                            default=core.ids.uuid7,
                            editable=False,
                            primary_key=True,
                            serialize=False,
                        ),
                    ),
                    ("public", models.BinaryField()),
                    ("sealed_private", models.BinaryField()),
                    (
                        "created_at",
                        models.DateTimeField(
                            db_default=audit.models.entries.ClockTime(), editable=False
                        ),
                    ),
                    ("withdrawn_at", models.DateTimeField(editable=False, null=True)),
                    (
                        "reason",
                        models.CharField(blank=True, default="", editable=False, max_length=300),
                    ),
                ],
                options={
                    "ordering": ["-created_at"],
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("reason", ""), ("withdrawn_at", None)),
                                models.Q(("reason__gt", ""), ("withdrawn_at__isnull", False)),
                                _connector="OR",
                            ),
                            name="approvals_key_withdrawn_with_reason",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="only_withdrawn",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF OLD.withdrawn_at IS NOT NULL AND\n            (to_jsonb(NEW) - 'sealed_private') IS DISTINCT FROM (to_jsonb(OLD) - 'sealed_private')\n        THEN\n            RAISE EXCEPTION 'a withdrawn key stays withdrawn';\n        ELSIF (to_jsonb(NEW) - '{sealed_private,withdrawn_at,reason}'::text[])\n            IS DISTINCT FROM (to_jsonb(OLD) - '{sealed_private,withdrawn_at,reason}'::text[])\n        THEN\n            RAISE EXCEPTION 'a key is never changed, only withdrawn';\n        END IF;\n        RETURN NEW;\n    ",
                                hash="d7423929907daa4582f00c1369a4ce5a90158ec6",
                                operation="UPDATE",
                                pgid="pgtrigger_only_withdrawn_c89ee",
                                table="approvals_decisionkey",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'approvals_decisionkey rows are never changed or removed';",
                                hash="30ca8393a4cc45c57940ed10e238bd94cf4ef709",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_4370c",
                                table="approvals_decisionkey",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'approvals_decisionkey rows are never changed or removed';",
                                hash="e1ad0f3f265681efbd8256e183394a5119aefa2f",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_d1604",
                                table="approvals_decisionkey",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Delegation",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "delegator",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "delegate",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "group",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="auth.group",
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="registry.server",
                        ),
                    ),
                    ("begins_at", models.DateTimeField()),
                    ("ends_at", models.DateTimeField()),
                    ("asks_both", models.BooleanField(default=False)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                ],
                options={
                    "ordering": ["begins_at", "id"],
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["ends_at"], name="approvals_delegation_ends")],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("ends_at__gte", models.F("begins_at"))),
                            name="approvals_delegation_ends_later",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("delegate", models.F("delegator")), _negated=True),
                            name="approvals_delegation_to_another",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="no_chains",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        -- Two that would be a chain together are made one after the other.\n        PERFORM pg_advisory_xact_lock(hashtext('approvals_delegation'));\n        IF EXISTS (\n            SELECT FROM approvals_delegation d\n            WHERE d.begins_at < NEW.ends_at AND NEW.begins_at < d.ends_at\n              AND (d.delegate_id = NEW.delegator_id OR d.delegator_id = NEW.delegate_id))\n        THEN\n            RAISE EXCEPTION 'a delegation is not passed on';\n        ELSIF EXISTS (\n            SELECT FROM approvals_delegation d\n            WHERE d.begins_at < NEW.ends_at AND NEW.begins_at < d.ends_at\n              AND d.delegator_id = NEW.delegator_id\n              AND (d.group_id IS NULL OR NEW.group_id IS NULL OR d.group_id = NEW.group_id)\n              AND (d.server_id IS NULL OR NEW.server_id IS NULL OR d.server_id = NEW.server_id))\n        THEN\n            RAISE EXCEPTION 'there is a delegate for these calls already';\n        ELSIF NOT approvals_may_decide(NEW.delegator_id)\n            OR NOT approvals_may_decide(NEW.delegate_id)\n        THEN\n            RAISE EXCEPTION 'this person may not decide';\n        END IF;\n        RETURN NEW;\n    ",
                                hash="56889750f53d156941e577d3999a8b53f1b85b95",
                                operation="INSERT",
                                pgid="pgtrigger_no_chains_b0f2b",
                                table="approvals_delegation",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="only_shortened",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF NEW.ends_at > OLD.ends_at OR\n            (to_jsonb(NEW) - 'ends_at') IS DISTINCT FROM (to_jsonb(OLD) - 'ends_at')\n        THEN\n            RAISE EXCEPTION 'a delegation is never changed, only ended';\n        END IF;\n        RETURN NEW;\n    ",
                                hash="2bb7ef5d8122105adf1ab73fde2407ad7ecf41b2",
                                operation="UPDATE",
                                pgid="pgtrigger_only_shortened_8604f",
                                table="approvals_delegation",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'approvals_delegation rows are never changed or removed';",
                                hash="63e5a80f14835598e1e0358fb71617eca20888d8",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_b36e1",
                                table="approvals_delegation",
                                when="BEFORE",
                            ),
                        ),
                    ],
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
                        "agent",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="grants",
                            to="accounts.agent",
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
                    ("arguments", models.BinaryField()),
                    ("bounds", models.JSONField(default=list)),
                    ("thresholds", models.JSONField()),
                    (
                        "step_up",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("passkey", "passkey"),
                                ("totp", "one-time code"),
                                ("oidc", "identity provider"),
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
                    (
                        "created_at",
                        models.DateTimeField(db_default=audit.models.entries.ClockTime()),
                    ),
                    ("expires_at", models.DateTimeField()),
                    ("last_used_at", models.DateTimeField(null=True)),
                    ("revoked_at", models.DateTimeField(null=True)),
                    (
                        "revoked_by",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                ],
                options={
                    "ordering": ["-id"],
                    "permissions": [("revoke_grant", "Can revoke everybody's standing grants")],
                    "default_permissions": ("view",),
                    "indexes": [
                        models.Index(fields=["agent", "definition"], name="approvals_grant_agent")
                    ],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                ("expires_at__gt", models.F("created_at")),
                                (
                                    "expires_at__lte",
                                    django.db.models.expressions.CombinedExpression(
                                        models.F("created_at"),
                                        "+",
                                        models.Value(datetime.timedelta(days=30)),
                                    ),
                                ),
                            ),
                            name="approvals_grant_ends",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("uses__lte", models.F("max_uses"))),
                            name="approvals_grant_uses",
                        ),
                        models.CheckConstraint(
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
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
                            name="only_used",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n        IF to_jsonb(NEW) - ARRAY['arguments', 'bounds', 'note'] = to_jsonb(OLD) - ARRAY['arguments', 'bounds', 'note'] AND NEW.arguments = '{}' AND NEW.bounds = '[]' AND NEW.note = '' AND calls_is_being_erased(OLD.call_id) THEN\n            RETURN NEW;\n        ELSIF (to_jsonb(NEW) - '{uses,summed,last_used_at,revoked_at,revoked_by_id}'::text[])\n            IS DISTINCT FROM\n            (to_jsonb(OLD) - '{uses,summed,last_used_at,revoked_at,revoked_by_id}'::text[])\n        THEN\n            RAISE EXCEPTION 'what was granted is never changed';\n        ELSIF NEW.uses NOT IN (OLD.uses, OLD.uses + 1) OR NEW.summed < OLD.summed THEN\n            RAISE EXCEPTION 'uses are counted one by one, and never taken back';\n        ELSIF OLD.revoked_at IS NOT NULL THEN\n            RAISE EXCEPTION 'a revoked grant stays revoked, and is not used';\n        END IF;\n        RETURN NEW;\n    ",
                                hash="2567f4ca26f4ddf8508116a1ac67a502c782cc50",
                                operation="UPDATE",
                                pgid="pgtrigger_only_used_6af3f",
                                table="approvals_grant",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
            migrations.CreateModel(
                name="GrantUse",
                fields=[
                    ("call_id", models.UUIDField(primary_key=True, serialize=False)),
                    (
                        "grant",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="uses_made",
                            to="approvals.grant",
                        ),
                    ),
                    ("amount", models.DecimalField(decimal_places=18, max_digits=40)),
                    ("at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
            migrations.CreateModel(
                name="QueueView",
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
                            related_name="queue_views",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("name", models.CharField(max_length=60, verbose_name="name")),
                    ("query", models.JSONField(default=dict)),
                ],
                options={
                    "ordering": ["name"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("owner", "name"), name="approvals_queue_view_once"
                        )
                    ],
                },
            ),
        ),
        run_file("approvals/sql/eligibility.sql"),
        run_file("approvals/sql/delegations.sql"),
        run_file("approvals/sql/counting_votes.sql"),
        run_file("approvals/sql/single_person_mode.sql"),
        run_file("approvals/sql/break_glass.sql"),
        run_file("approvals/sql/erasing.sql"),
        run_file("approvals/sql/erasing_results.sql"),
    ]

from decimal import Decimal

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import pgtrigger.compiler
from django.conf import settings
from django.db import migrations, models

import core.triggers
from core.create_models import CreateModels
from core.sql_files import run_file, watched


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("policies", "0001_initial"),
        ("policies", "0002_watch_memberships"),
        ("policies", "0003_conditions"),
        ("policies", "0004_thresholds"),
        ("policies", "0005_confirm_grants"),
        ("policies", "0006_told_to_agents"),
        ("policies", "0001_squashed"),
        ("policies", "0002_limits"),
        ("policies", "0003_raised_limits"),
        ("policies", "0004_given_back"),
        ("policies", "0005_unusual_use"),
        ("policies", "0006_unusual_kinds_seen"),
        ("policies", "0007_shows_arguments"),
        ("policies", "0008_policy_plans"),
        ("policies", "0009_results"),
        ("policies", "0010_cost_result"),
    ]

    dependencies = [
        ("accounts", "0001_joined"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        CreateModels(
            migrations.CreateModel(
                name="Rule",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("position", models.PositiveIntegerField(default=100)),
                    ("name", models.CharField(max_length=100, unique=True, verbose_name="name")),
                    (
                        "mode",
                        models.CharField(
                            choices=[("enforce", "On"), ("shadow", "Monitor only"), ("off", "Off")],
                            default="enforce",
                            max_length=7,
                            verbose_name="mode",
                        ),
                    ),
                    (
                        "effect",
                        models.CharField(
                            choices=[
                                ("allow", "Allow"),
                                ("ask", "Require approval"),
                                ("deny", "Deny"),
                            ],
                            max_length=5,
                            verbose_name="effect",
                        ),
                    ),
                    (
                        "server",
                        models.CharField(default="*", max_length=100, verbose_name="server"),
                    ),
                    ("tool", models.CharField(default="*", max_length=200, verbose_name="tool")),
                    (
                        "hint",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("", "whatever it says"),
                                ("destructive", "destructive (or not declared)"),
                                ("writes", "not read-only (or not declared)"),
                                ("open_world", "open-world (or not declared)"),
                            ],
                            default="",
                            max_length=12,
                            verbose_name="tool says",
                        ),
                    ),
                    ("when", models.TextField(blank=True, verbose_name="condition")),
                    ("reason", models.CharField(blank=True, max_length=300, verbose_name="reason")),
                    (
                        "instead",
                        models.CharField(
                            blank=True,
                            db_default="",
                            default="",
                            max_length=300,
                            verbose_name="allowed instead",
                        ),
                    ),
                    (
                        "unnamed",
                        models.BooleanField(
                            db_default=False,
                            default=False,
                            verbose_name="agents do not see its name",
                        ),
                    ),
                    (
                        "thresholds",
                        models.JSONField(blank=True, default=list, verbose_name="who decides"),
                    ),
                    (
                        "decide_within",
                        models.PositiveIntegerField(
                            blank=True,
                            null=True,
                            validators=[
                                django.core.validators.MinValueValidator(1),
                                django.core.validators.MaxValueValidator(2592000),
                            ],
                            verbose_name="decide within",
                        ),
                    ),
                    (
                        "start_within",
                        models.PositiveIntegerField(
                            blank=True,
                            null=True,
                            validators=[
                                django.core.validators.MinValueValidator(1),
                                django.core.validators.MaxValueValidator(2592000),
                            ],
                            verbose_name="start within",
                        ),
                    ),
                    (
                        "confirm_grants",
                        models.BooleanField(
                            db_default=False,
                            default=False,
                            verbose_name="standing approvals need a passkey or code",
                        ),
                    ),
                    (
                        "shows_arguments",
                        models.BooleanField(
                            db_default=False,
                            default=False,
                            verbose_name="messages show the arguments",
                        ),
                    ),
                    (
                        "results",
                        models.JSONField(
                            blank=True, db_default={}, default=dict, verbose_name="results"
                        ),
                    ),
                    (
                        "agents",
                        models.ManyToManyField(blank=True, related_name="+", to="accounts.agent"),
                    ),
                    (
                        "owner_groups",
                        models.ManyToManyField(blank=True, related_name="+", to="auth.group"),
                    ),
                ],
                options={
                    "ordering": ["position", "id"],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                ("hint", ""),
                                models.Q(("effect", "allow"), _negated=True),
                                _connector="OR",
                            ),
                            name="policies_hints_only_tighten",
                            violation_error_message="A rule that allows cannot rest on a server's hints.",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="e46d74d5b2df66307f1b6a4744af18b198f186a4",
                                level="STATEMENT",
                                operation="INSERT OR DELETE OR UPDATE",
                                pgid="pgtrigger_configuration_ebd25",
                                table="policies_rule",
                                when="AFTER",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="Limit",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("name", models.CharField(max_length=100, unique=True, verbose_name="name")),
                    (
                        "mode",
                        models.CharField(
                            choices=[("enforce", "On"), ("shadow", "Monitor only"), ("off", "Off")],
                            default="enforce",
                            max_length=7,
                            verbose_name="mode",
                        ),
                    ),
                    (
                        "effect",
                        models.CharField(
                            choices=[("ask", "Require approval"), ("deny", "Deny")],
                            max_length=5,
                            verbose_name="effect",
                        ),
                    ),
                    (
                        "kind",
                        models.CharField(
                            choices=[
                                ("calls", "Calls"),
                                ("bytes", "Bytes of arguments"),
                                ("concurrency", "Calls at the same time"),
                                ("cost", "Cost"),
                                ("repeats", "Identical calls in a row"),
                                ("failures", "Failures in a row"),
                            ],
                            max_length=11,
                            verbose_name="what is counted",
                        ),
                    ),
                    (
                        "amount",
                        models.DecimalField(
                            decimal_places=6,
                            max_digits=20,
                            validators=[
                                django.core.validators.MinValueValidator(Decimal("0.000001")),
                                django.core.validators.MaxValueValidator(Decimal("1000000000000")),
                            ],
                            verbose_name="at most",
                        ),
                    ),
                    (
                        "period",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("second", "second"),
                                ("minute", "minute"),
                                ("hour", "hour"),
                                ("day", "day"),
                                ("month", "month"),
                            ],
                            default="",
                            max_length=6,
                            verbose_name="per",
                        ),
                    ),
                    (
                        "burst",
                        models.PositiveBigIntegerField(
                            blank=True,
                            null=True,
                            validators=[django.core.validators.MinValueValidator(1)],
                            verbose_name="at once",
                        ),
                    ),
                    (
                        "cost",
                        models.DecimalField(
                            blank=True,
                            decimal_places=6,
                            max_digits=20,
                            null=True,
                            validators=[
                                django.core.validators.MinValueValidator(Decimal("0.000001"))
                            ],
                            verbose_name="cost of a call",
                        ),
                    ),
                    (
                        "cost_argument",
                        models.CharField(
                            blank=True,
                            default="",
                            max_length=200,
                            verbose_name="argument with the cost",
                        ),
                    ),
                    (
                        "cost_result",
                        models.CharField(
                            blank=True,
                            db_default="",
                            default="",
                            max_length=200,
                            verbose_name="result field with the cost",
                        ),
                    ),
                    (
                        "unit",
                        models.CharField(
                            blank=True, default="", max_length=20, verbose_name="unit"
                        ),
                    ),
                    (
                        "minutes",
                        models.PositiveIntegerField(
                            blank=True,
                            null=True,
                            validators=[
                                django.core.validators.MinValueValidator(1),
                                django.core.validators.MaxValueValidator(10080),
                            ],
                            verbose_name="for minutes",
                        ),
                    ),
                    (
                        "per",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(
                                choices=[
                                    ("agent", "agent"),
                                    ("person", "person (the agent's owner)"),
                                    ("toolset", "toolset"),
                                    ("server", "server"),
                                    ("tool", "tool"),
                                    ("risk", "risk"),
                                ],
                                max_length=7,
                            ),
                            blank=True,
                            default=list,
                            size=None,
                            verbose_name="counted for each",
                        ),
                    ),
                    (
                        "server",
                        models.CharField(default="*", max_length=100, verbose_name="server"),
                    ),
                    ("tool", models.CharField(default="*", max_length=200, verbose_name="tool")),
                    (
                        "hint",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("", "whatever it says"),
                                ("destructive", "destructive (or not declared)"),
                                ("writes", "not read-only (or not declared)"),
                                ("open_world", "open-world (or not declared)"),
                            ],
                            default="",
                            max_length=12,
                            verbose_name="tool says",
                        ),
                    ),
                    (
                        "reason",
                        models.CharField(
                            blank=True, default="", max_length=300, verbose_name="reason"
                        ),
                    ),
                    (
                        "agents",
                        models.ManyToManyField(blank=True, related_name="+", to="accounts.agent"),
                    ),
                    (
                        "owner_groups",
                        models.ManyToManyField(blank=True, related_name="+", to="auth.group"),
                    ),
                ],
                options={
                    "ordering": ["name"],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("effect__in", ["ask", "deny"])),
                            name="policies_limit_never_allows",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("amount__gt", 0)), name="policies_limit_amount"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("kind__in", ["calls", "bytes", "cost"]), ("period__gt", "")
                                ),
                                models.Q(
                                    ("kind__in", ["concurrency", "repeats", "failures"]),
                                    ("period", ""),
                                ),
                                _connector="OR",
                            ),
                            name="policies_limit_period",
                            violation_error_message="It is counted per second, minute, hour, day or month.",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="b4af1b72068b9410c4e3a48b669f7dbe42f0b2bb",
                                level="STATEMENT",
                                operation="INSERT OR DELETE OR UPDATE",
                                pgid="pgtrigger_configuration_acfc7",
                                table="policies_limit",
                                when="AFTER",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="LimitCounter",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "limit",
                        models.ForeignKey(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="counters",
                            to="policies.limit",
                        ),
                    ),
                    ("key", models.CharField(max_length=300)),
                    ("label", models.CharField(max_length=500)),
                    ("agent_id", models.BigIntegerField(null=True)),
                    ("person_id", models.BigIntegerField(null=True)),
                    ("tat", models.DateTimeField(null=True)),
                    (
                        "spent",
                        models.DecimalField(
                            db_default=0, decimal_places=6, default=Decimal("0"), max_digits=26
                        ),
                    ),
                    ("since", models.DateTimeField(null=True)),
                    ("last", models.CharField(db_default="", default="", max_length=100)),
                    ("until", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [
                        models.Index(
                            condition=models.Q(("agent_id__isnull", False)),
                            fields=["agent_id"],
                            name="policies_counter_agent",
                        )
                    ],
                    "constraints": [
                        models.UniqueConstraint(fields=("limit", "key"), name="policies_counter_of")
                    ],
                },
            ),
            migrations.CreateModel(
                name="LimitUse",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "counter",
                        models.ForeignKey(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="uses",
                            to="policies.limitcounter",
                        ),
                    ),
                    ("call_id", models.UUIDField()),
                    ("amount", models.DecimalField(decimal_places=6, max_digits=26)),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("call_id", "counter"), name="policies_use_once"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="PolicyPlan",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("digest", models.CharField(max_length=64, unique=True)),
                    ("base_digest", models.CharField(max_length=64)),
                    ("proposal", models.TextField()),
                    ("managed_by", models.CharField(blank=True, max_length=500)),
                    ("origin", models.CharField(blank=True, max_length=500)),
                    ("changes", models.JSONField()),
                    ("result", models.JSONField()),
                    (
                        "account",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.serviceaccount",
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
                    ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                    ("applied_at", models.DateTimeField(null=True)),
                    ("applied_by", models.CharField(blank=True, max_length=200)),
                ],
                options={
                    "ordering": ["-id"],
                    "permissions": [
                        ("confirm_policyplan", "Can confirm plans of policy files"),
                        ("apply_policyplan", "Can apply confirmed plans of policy files"),
                    ],
                    "default_permissions": ("view", "add"),
                    "indexes": [models.Index(fields=["-applied_at"], name="policies_plan_applied")],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="fixed",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.digest, NEW.base_digest, NEW.proposal, NEW.managed_by, NEW.origin, NEW.changes, NEW.result, NEW.account_id, NEW.person_id, NEW.created_at) IS DISTINCT FROM ROW(OLD.digest, OLD.base_digest, OLD.proposal, OLD.managed_by, OLD.origin, OLD.changes, OLD.result, OLD.account_id, OLD.person_id, OLD.created_at) THEN\n                RAISE EXCEPTION 'digest, base_digest, proposal, managed_by, origin, changes, result, account_id, person_id, created_at: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="c169c718d1c3550b7b91317b43143ea97d5eb32f",
                                operation="UPDATE",
                                pgid="pgtrigger_fixed_7c1d0",
                                table="policies_policyplan",
                                when="BEFORE",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="PlanConfirmation",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "plan",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="confirmations",
                            to="policies.policyplan",
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
                        "proof",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.proof",
                        ),
                    ),
                    ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ],
                options={
                    "ordering": ["id"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("plan", "person"), name="policies_confirmed_once"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="no_update",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'policies_planconfirmation rows are never changed or removed';",
                                hash="8abfa58a96be454fee6c790892bf27ba07e7cd44",
                                level="STATEMENT",
                                operation="UPDATE",
                                pgid="pgtrigger_no_update_51c26",
                                table="policies_planconfirmation",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'policies_planconfirmation rows are never changed or removed';",
                                hash="d8decb8efd6e9922070c08f4cbec0fcd73fbe664",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_13a05",
                                table="policies_planconfirmation",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'policies_planconfirmation rows are never changed or removed';",
                                hash="8930a68c3191991052bcfbaf3a62f7af16cee60d",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_e5625",
                                table="policies_planconfirmation",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="UnusualUse",
                fields=[
                    (
                        "agent",
                        models.OneToOneField(
                            db_constraint=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            primary_key=True,
                            related_name="+",
                            serialize=False,
                            to="accounts.agent",
                        ),
                    ),
                    ("kinds_seen", models.JSONField(default=dict)),
                    (
                        "reasons",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.TextField(), size=None
                        ),
                    ),
                    ("since", models.DateTimeField()),
                    ("seen_at", models.DateTimeField()),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["seen_at"], name="policies_unusual_seen")],
                },
            ),
        ),
        *watched(
            "policies_rule_agents",
            "policies_rule_owner_groups",
            "policies_limit_agents",
            "policies_limit_owner_groups",
        ),
        run_file("policies/sql/limits.sql"),
    ]

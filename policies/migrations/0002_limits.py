from decimal import Decimal

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import core.triggers
from core.sql_files import run_file, watched


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_agent_hold"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("policies", "0001_squashed"),
    ]

    operations = [
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
                        validators=[django.core.validators.MinValueValidator(Decimal("0.000001"))],
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
                    "unit",
                    models.CharField(blank=True, default="", max_length=20, verbose_name="unit"),
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
                ("server", models.CharField(default="*", max_length=100, verbose_name="server")),
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
                    models.CharField(blank=True, default="", max_length=300, verbose_name="reason"),
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
                (
                    "limit",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="counters",
                        to="policies.limit",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
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
                ("call_id", models.UUIDField()),
                ("amount", models.DecimalField(decimal_places=6, max_digits=26)),
                (
                    "counter",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="policies.limitcounter",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.CheckConstraint(
                condition=models.Q(("effect__in", ["ask", "deny"])),
                name="policies_limit_never_allows",
            ),
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount__gt", 0)), name="policies_limit_amount"
            ),
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind__in", ["calls", "bytes", "cost"]), ("period__gt", "")),
                    models.Q(("kind__in", ["concurrency", "repeats", "failures"]), ("period", "")),
                    _connector="OR",
                ),
                name="policies_limit_period",
                violation_error_message="It is counted per second, minute, hour, day or month.",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="limit",
            trigger=pgtrigger.compiler.Trigger(
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
            ),
        ),
        migrations.AddIndex(
            model_name="limitcounter",
            index=models.Index(
                condition=models.Q(("agent_id__isnull", False)),
                fields=["agent_id"],
                name="policies_counter_agent",
            ),
        ),
        migrations.AddConstraint(
            model_name="limitcounter",
            constraint=models.UniqueConstraint(fields=("limit", "key"), name="policies_counter_of"),
        ),
        migrations.AddConstraint(
            model_name="limituse",
            constraint=models.UniqueConstraint(
                fields=("call_id", "counter"), name="policies_use_once"
            ),
        ),
        *watched("policies_limit_agents", "policies_limit_owner_groups"),
        run_file("policies/sql/limits.sql"),
    ]

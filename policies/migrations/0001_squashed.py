import django.core.validators
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import core.triggers
from core.sql_files import watched


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("policies", "0001_initial"),
        ("policies", "0002_watch_memberships"),
        ("policies", "0003_conditions"),
        ("policies", "0004_thresholds"),
        ("policies", "0005_confirm_grants"),
        ("policies", "0006_told_to_agents"),
    ]

    dependencies = [
        ("core", "0001_squashed"),
        ("accounts", "0001_squashed"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
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
                        choices=[("allow", "Allow"), ("ask", "Require approval"), ("deny", "Deny")],
                        max_length=5,
                        verbose_name="effect",
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
                        db_default=False, default=False, verbose_name="agents are not told its name"
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
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="rule",
            trigger=pgtrigger.compiler.Trigger(
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
            ),
        ),
        *watched("policies_rule_agents", "policies_rule_owner_groups"),
    ]

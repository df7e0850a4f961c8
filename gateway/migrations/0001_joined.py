import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from core.create_models import CreateModels


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("gateway", "0001_saved_cases"),
        ("gateway", "0002_answered_requests"),
    ]

    dependencies = [
        ("accounts", "0001_joined"),
        ("calls", "0002_joined_months"),
        ("registry", "0001_joined"),
    ]

    operations = [
        CreateModels(
            migrations.CreateModel(
                name="AnsweredRequest",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "account",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="accounts.serviceaccount",
                        ),
                    ),
                    ("key", models.CharField(max_length=200)),
                    ("request_digest", models.BinaryField(max_length=32)),
                    ("status", models.PositiveSmallIntegerField(default=0)),
                    ("headers", models.JSONField(default=dict)),
                    ("body", models.BinaryField(default=b"")),
                    ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["at"], name="gateway_answered_at")],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("account", "key"), name="gateway_answered_once"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="SavedCase",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "tool",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="cases",
                            to="registry.tool",
                        ),
                    ),
                    ("name", models.CharField(max_length=100, verbose_name="name")),
                    ("arguments", models.BinaryField()),
                    (
                        "outcome",
                        models.CharField(
                            choices=[("success", "A result"), ("error", "A tool error")],
                            default="success",
                            max_length=7,
                        ),
                    ),
                    (
                        "fits_schema",
                        models.BooleanField(
                            default=False, verbose_name="The result fits the output schema"
                        ),
                    ),
                    ("contains", models.CharField(blank=True, default="", max_length=500)),
                    ("values", models.TextField(blank=True, default="", max_length=4000)),
                    ("within_ms", models.PositiveIntegerField(blank=True, null=True)),
                    (
                        "written_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    (
                        "last_run",
                        models.ForeignKey(
                            editable=False,
                            null=True,
                            on_delete=django.db.models.deletion.SET_NULL,
                            related_name="+",
                            to="gateway.caserun",
                        ),
                    ),
                ],
                options={
                    "ordering": ["name"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("tool", "name"),
                            name="gateway_case_once_a_tool",
                            violation_error_message="The tool has a case of this name.",
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="CaseRun",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "case",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="runs",
                            to="gateway.savedcase",
                        ),
                    ),
                    (
                        "call",
                        models.ForeignKey(
                            db_constraint=False,
                            db_index=False,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="calls.call",
                        ),
                    ),
                    (
                        "definition",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="registry.definition",
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
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("is_scheduled", models.BooleanField(default=False)),
                    (
                        "state",
                        models.CharField(
                            choices=[
                                ("open", "Running"),
                                ("passed", "Passed"),
                                ("failed", "Failed"),
                                ("not_run", "Not run"),
                            ],
                            default="open",
                            max_length=7,
                        ),
                    ),
                    ("reason", models.TextField(blank=True, default="")),
                    ("checks", models.JSONField(default=list)),
                    ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ],
                options={
                    "ordering": ["-id"],
                    "default_permissions": (),
                    "indexes": [
                        models.Index(fields=["case", "-id"], name="gateway_run_of_case"),
                        models.Index(
                            condition=models.Q(("state", "open")),
                            fields=["id"],
                            name="gateway_run_open",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="CaseSchedule",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "case",
                        models.OneToOneField(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="schedule",
                            to="gateway.savedcase",
                        ),
                    ),
                    (
                        "server",
                        models.OneToOneField(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="case_schedule",
                            to="registry.server",
                        ),
                    ),
                    (
                        "every",
                        models.CharField(
                            choices=[("hour", "Hourly"), ("day", "Daily"), ("week", "Weekly")],
                            max_length=4,
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
                        "agent",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.agent",
                        ),
                    ),
                    ("confirmed", models.JSONField(default=dict)),
                    ("next_at", models.DateTimeField(db_index=True)),
                    ("stopped", models.TextField(blank=True, default="")),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("case__isnull", True), ("server__isnull", False)),
                                models.Q(("case__isnull", False), ("server__isnull", True)),
                                _connector="OR",
                            ),
                            name="gateway_schedule_of_one",
                        )
                    ],
                },
            ),
        ),
    ]

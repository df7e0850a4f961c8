import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import audit.models.entries
import core.ids
import notifications.models
from core.create_models import CreateModels
from core.sql_files import run_file


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("notifications", "0001_initial"),
        ("notifications", "0002_link_sent_at"),
        ("notifications", "0003_chat_formats"),
        ("notifications", "0004_role_changed"),
        ("notifications", "0005_recovery_codes"),
        ("notifications", "0006_sessions"),
        ("notifications", "0007_password_reset"),
        ("notifications", "0008_push"),
        ("notifications", "0009_quiet_hours"),
        ("notifications", "0010_escalation"),
        ("notifications", "0011_on_call_schedules"),
        ("notifications", "0012_target_words"),
        ("notifications", "0013_on_call_calendars"),
        ("notifications", "0014_delegation_events"),
        ("notifications", "0015_slack_apps"),
        ("notifications", "0016_factor_reset"),
        ("notifications", "0017_break_glass"),
        ("notifications", "0018_chat_account_signed_by"),
        ("notifications", "0019_operating_events"),
        ("notifications", "0020_escalation_of_rule"),
        ("notifications", "0021_unusual_use"),
        ("notifications", "0022_delivery_links"),
        ("notifications", "0023_takes_arguments"),
        ("notifications", "0024_acted_at"),
        ("notifications", "0025_channel_names"),
    ]

    dependencies = [
        ("accounts", "0001_joined"),
        ("audit", "0001_joined"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("policies", "0001_joined"),
    ]

    operations = [
        CreateModels(
            migrations.CreateModel(
                name="OnCallSchedule",
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
                    ("name", models.CharField(max_length=60, unique=True, verbose_name="name")),
                    ("time_zone", models.CharField(default="UTC", max_length=64)),
                    (
                        "handover_weekday",
                        models.PositiveSmallIntegerField(
                            choices=[
                                (0, "Monday"),
                                (1, "Tuesday"),
                                (2, "Wednesday"),
                                (3, "Thursday"),
                                (4, "Friday"),
                                (5, "Saturday"),
                                (6, "Sunday"),
                            ],
                            default=0,
                            verbose_name="hand-over day",
                        ),
                    ),
                    ("handover_at", models.TimeField(verbose_name="hand-over time")),
                    ("starts_on", models.DateField(verbose_name="starts on")),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                ],
                options={
                    "ordering": ["name"],
                    "default_permissions": ("change", "view"),
                },
            ),
            migrations.CreateModel(
                name="OnCallMember",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "schedule",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="members",
                            to="notifications.oncallschedule",
                        ),
                    ),
                    ("place", models.PositiveSmallIntegerField()),
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                ],
                options={
                    "ordering": ["place"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("schedule", "place"), name="notifications_one_person_a_place"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="OnCallOverride",
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
                    (
                        "schedule",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="overrides",
                            to="notifications.oncallschedule",
                        ),
                    ),
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("begins_at", models.DateTimeField()),
                    ("ends_at", models.DateTimeField()),
                ],
                options={
                    "ordering": ["begins_at", "id"],
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("ends_at__gt", models.F("begins_at"))),
                            name="notifications_override_ends_later",
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="OnCallCalendar",
                fields=[
                    (
                        "schedule",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            primary_key=True,
                            related_name="calendar",
                            serialize=False,
                            to="notifications.oncallschedule",
                        ),
                    ),
                    ("url", models.CharField(max_length=500)),
                    ("sealed_url", models.BinaryField()),
                    ("shifts", models.JSONField(default=list)),
                    ("checked_at", models.DateTimeField(null=True)),
                    ("read_at", models.DateTimeField(null=True)),
                    ("whole_at", models.DateTimeField(null=True)),
                    ("etag", models.CharField(blank=True, max_length=200)),
                    ("failing_since", models.DateTimeField(null=True)),
                    ("error", models.CharField(blank=True, max_length=500)),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="EscalationPolicy",
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
                    (
                        "rule",
                        models.OneToOneField(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="policies.rule",
                        ),
                    ),
                    (
                        "group",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="escalation_policies",
                            to="auth.group",
                        ),
                    ),
                    (
                        "changed_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                ],
                options={
                    "ordering": ["rule__name", "group__name"],
                    "default_permissions": ("change",),
                    "constraints": [
                        models.UniqueConstraint(
                            condition=models.Q(("rule", None)),
                            fields=("group",),
                            name="notifications_one_policy_a_group",
                            nulls_distinct=False,
                        ),
                        models.CheckConstraint(
                            condition=models.Q(("rule", None), ("group", None), _connector="OR"),
                            name="notifications_policy_of_rule_or_group",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="EscalationStep",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "policy",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="steps",
                            to="notifications.escalationpolicy",
                        ),
                    ),
                    ("after_min", models.PositiveSmallIntegerField()),
                    (
                        "target",
                        models.CharField(
                            choices=[
                                ("everybody", "The whole group"),
                                ("turn", "Round robin"),
                                ("on_call", "Whoever is on call"),
                                ("group", "Another group"),
                            ],
                            max_length=9,
                        ),
                    ),
                    ("people", models.PositiveSmallIntegerField(null=True)),
                    (
                        "group",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="auth.group",
                        ),
                    ),
                    (
                        "schedule",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="notifications.oncallschedule",
                        ),
                    ),
                ],
                options={
                    "ordering": ["after_min"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("policy", "after_min"), name="notifications_one_step_a_time"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("group", None),
                                    ("people", None),
                                    ("schedule", None),
                                    ("target", "everybody"),
                                ),
                                models.Q(
                                    ("group", None),
                                    ("people__gte", 1),
                                    ("schedule", None),
                                    ("target", "turn"),
                                ),
                                models.Q(
                                    ("group", None),
                                    ("people", None),
                                    ("schedule__isnull", False),
                                    ("target", "on_call"),
                                ),
                                models.Q(
                                    ("group__isnull", False),
                                    ("people", None),
                                    ("schedule", None),
                                    ("target", "group"),
                                ),
                                _connector="OR",
                            ),
                            name="notifications_target_of_step",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Escalation",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("call_id", models.UUIDField()),
                    ("entry_id", models.BigIntegerField()),
                    ("source", models.CharField(blank=True, max_length=160)),
                    ("done_min", models.PositiveSmallIntegerField()),
                    ("next_at", models.DateTimeField()),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["next_at"], name="notifications_escalates")],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("call_id", "source"), name="notifications_one_escalation"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ChatAccount",
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
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="chat_accounts",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("begun_at", models.DateTimeField(default=django.utils.timezone.now)),
                    ("code_digest", models.CharField(blank=True, max_length=64)),
                    ("nonce_digest", models.CharField(blank=True, max_length=64)),
                    ("team_id", models.CharField(blank=True, max_length=32)),
                    ("team_name", models.CharField(blank=True, max_length=120)),
                    ("user_id", models.CharField(blank=True, max_length=32)),
                    ("user_name", models.CharField(blank=True, max_length=120)),
                    ("signed_by", models.CharField(blank=True, max_length=64)),
                    ("linked_at", models.DateTimeField(null=True)),
                ],
                options={
                    "ordering": ["linked_at"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            condition=models.Q(("linked_at__isnull", False)),
                            fields=("team_id", "user_id"),
                            name="notifications_chat_user_once",
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(("linked_at__isnull", False)),
                            fields=("person", "team_id"),
                            name="notifications_person_once_a_team",
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(("linked_at__isnull", True)),
                            fields=("person",),
                            name="notifications_one_begun_link",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="SlackRequest",
                fields=[
                    (
                        "signature",
                        models.CharField(max_length=80, primary_key=True, serialize=False),
                    ),
                    ("at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="MailRecipient",
                fields=[
                    (
                        "person",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            primary_key=True,
                            related_name="mail_recipient",
                            serialize=False,
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("address", models.EmailField(max_length=254, verbose_name="e-mail address")),
                    ("confirmed_at", models.DateTimeField(editable=False, null=True)),
                    ("link_sent_at", models.DateTimeField(editable=False, null=True)),
                    (
                        "events",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=32),
                            blank=True,
                            default=notifications.models.usual_events,
                            size=None,
                        ),
                    ),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="DoNotDisturb",
                fields=[
                    (
                        "person",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            primary_key=True,
                            related_name="do_not_disturb",
                            serialize=False,
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("quiet_from", models.TimeField(null=True)),
                    ("quiet_until", models.TimeField(null=True)),
                    ("muted_until", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("quiet_from__isnull", True), ("quiet_until__isnull", True)
                                ),
                                models.Q(
                                    ("quiet_from__isnull", False), ("quiet_until__isnull", False)
                                ),
                                _connector="OR",
                            ),
                            name="notifications_quiet_from_until",
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="Webhook",
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
                    ("name", models.CharField(max_length=60, unique=True, verbose_name="name")),
                    (
                        "format",
                        models.CharField(
                            choices=[
                                ("standard", "Standard Webhooks (signed JSON)"),
                                ("slack", "Slack"),
                                ("slack_app", "Slack app"),
                                ("teams", "Microsoft Teams"),
                                ("mattermost", "Mattermost"),
                                ("discord", "Discord"),
                                ("telegram", "Telegram"),
                            ],
                            default="standard",
                            max_length=10,
                            verbose_name="format",
                        ),
                    ),
                    ("url", models.URLField(max_length=500, verbose_name="URL")),
                    ("sealed_url", models.BinaryField(null=True)),
                    (
                        "language",
                        models.CharField(
                            choices=[("en", "English"), ("zh-hans", "简体中文")],
                            default="en",
                            max_length=16,
                            verbose_name="language",
                        ),
                    ),
                    (
                        "events",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=32),
                            blank=True,
                            default=list,
                            size=None,
                        ),
                    ),
                    ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                    ("takes_arguments", models.BooleanField(default=False, editable=False)),
                    ("sealed_secret", models.BinaryField()),
                    ("sealed_previous", models.BinaryField(null=True)),
                    ("previous_until", models.DateTimeField(editable=False, null=True)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    (
                        "created_by",
                        models.ForeignKey(
                            editable=False,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                ],
                options={
                    "ordering": ["name"],
                },
            ),
            migrations.CreateModel(
                name="SlackApp",
                fields=[
                    (
                        "webhook",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            primary_key=True,
                            related_name="slack_app",
                            serialize=False,
                            to="notifications.webhook",
                        ),
                    ),
                    ("team_id", models.CharField(editable=False, max_length=32)),
                    ("team_name", models.CharField(editable=False, max_length=120)),
                    ("channel", models.CharField(max_length=81, verbose_name="channel")),
                    ("sealed_token", models.BinaryField()),
                    ("sealed_signing_secret", models.BinaryField()),
                    (
                        "takes_denials",
                        models.BooleanField(default=False, verbose_name="Deny in Slack"),
                    ),
                    (
                        "takes_comments",
                        models.BooleanField(default=False, verbose_name="Comment in Slack"),
                    ),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="PushKey",
                fields=[
                    (
                        "id",
                        models.SmallIntegerField(
                            default=1, editable=False, primary_key=True, serialize=False
                        ),
                    ),
                    ("sealed_private", models.BinaryField()),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("id", 1)), name="notifications_one_push_key"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="PushDevice",
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
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="push_devices",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("name", models.CharField(max_length=80)),
                    ("host", models.CharField(max_length=253)),
                    ("sealed_subscription", models.BinaryField()),
                    ("fingerprint", models.CharField(editable=False, max_length=64, unique=True)),
                    (
                        "events",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=32),
                            blank=True,
                            default=notifications.models.usual_events,
                            size=None,
                        ),
                    ),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("last_sent_at", models.DateTimeField(editable=False, null=True)),
                ],
                options={
                    "ordering": ["created_at"],
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="Delivery",
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
                    ("entry_id", models.BigIntegerField()),
                    (
                        "event",
                        models.CharField(
                            choices=[
                                ("approval.needed", "Approval needed"),
                                ("approval.reminder", "Reminder before a pending call expires"),
                                ("approval.decided", "A pending call was approved or denied"),
                                ("approval.expired", "A pending call expired"),
                                (
                                    "approval.withdrawn",
                                    "A pending call was withdrawn or superseded",
                                ),
                                ("call.outcome_unknown", "The outcome of a call is unknown"),
                                ("definition.review_needed", "Definitions to review"),
                                ("server.unreachable", "A server is unreachable"),
                                ("server.reachable", "A server is reachable"),
                                ("on_call_calendar.failed", "An on-call calendar cannot be read"),
                                (
                                    "on_call_calendar.recovered",
                                    "An on-call calendar can be read again",
                                ),
                                ("token.expiring", "A token is about to expire"),
                                ("limit.reached", "A limit or budget was reached"),
                                ("agent.unusual", "The use of an agent is unusual"),
                                (
                                    "audit.verification_failed",
                                    "The verification of the audit log failed",
                                ),
                                ("backup.failed", "A backup failed"),
                                ("workload.weekly", "Approval workload of the week"),
                                ("emergency_stop.began", "An emergency stop began"),
                                ("emergency_stop.ended", "An emergency stop ended"),
                                (
                                    "role.changed",
                                    "A role that decides was given, requested or taken away",
                                ),
                                ("break_glass.used", "Break-glass was used"),
                                ("recovery_code.used", "A recovery code was used"),
                                ("person.new_device", "Sign-in on a new device"),
                                ("person.factors_reset", "Second factors were removed"),
                                (
                                    "password_reset.requested",
                                    "A link for a new password was asked for",
                                ),
                                ("delegation.made", "You were chosen as a delegate"),
                                ("delegation.ended", "A delegation ended early"),
                                ("test", "Test message"),
                            ],
                            max_length=32,
                        ),
                    ),
                    ("call_id", models.UUIDField(null=True)),
                    ("server", models.CharField(blank=True, max_length=64)),
                    (
                        "channel",
                        models.CharField(
                            choices=[("email", "E-mail"), ("webhook", "Webhook"), ("push", "Push")],
                            max_length=7,
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
                        "webhook",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="deliveries",
                            to="notifications.webhook",
                        ),
                    ),
                    (
                        "device",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="deliveries",
                            to="notifications.pushdevice",
                        ),
                    ),
                    (
                        "state",
                        models.CharField(
                            choices=[
                                ("pending", "Queued"),
                                ("sent", "Delivered"),
                                ("dropped", "Not needed any more"),
                                ("dead", "Given up"),
                            ],
                            default="pending",
                            max_length=7,
                        ),
                    ),
                    ("attempts", models.PositiveSmallIntegerField(default=0)),
                    ("next_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                    (
                        "created_at",
                        models.DateTimeField(db_default=audit.models.entries.ClockTime()),
                    ),
                    ("ended_at", models.DateTimeField(null=True)),
                    ("opened_at", models.DateTimeField(null=True)),
                    ("unsigned_at", models.DateTimeField(null=True)),
                    (
                        "strangers",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.BigIntegerField(),
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
                    ("acted_at", models.DateTimeField(null=True)),
                    ("receipt", models.CharField(blank=True, default="", max_length=64)),
                    ("error", models.CharField(blank=True, max_length=500)),
                ],
                options={
                    "ordering": ["-id"],
                    "default_permissions": (),
                    "indexes": [
                        models.Index(
                            condition=models.Q(("state", "pending")),
                            fields=["next_at"],
                            name="notifications_due",
                        ),
                        models.Index(
                            condition=models.Q(("state", "dead")),
                            fields=["id"],
                            name="notifications_dead",
                        ),
                        models.Index(
                            condition=models.Q(("call_id__isnull", False)),
                            fields=["call_id"],
                            name="notifications_call",
                        ),
                        models.Index(fields=["ended_at"], name="notifications_ended"),
                    ],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(
                                    ("channel", "email"),
                                    ("device__isnull", True),
                                    ("person__isnull", False),
                                    ("webhook__isnull", True),
                                ),
                                models.Q(
                                    ("channel", "webhook"),
                                    ("device__isnull", True),
                                    ("person__isnull", True),
                                    ("webhook__isnull", False),
                                ),
                                models.Q(
                                    ("channel", "push"),
                                    ("device__isnull", False),
                                    ("person__isnull", True),
                                    ("webhook__isnull", True),
                                ),
                                _connector="OR",
                            ),
                            name="notifications_one_receiver",
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(("person__isnull", False)),
                            fields=("entry_id", "event", "person"),
                            name="notifications_once_a_person",
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(("webhook__isnull", False)),
                            fields=("entry_id", "event", "webhook"),
                            name="notifications_once_a_webhook",
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(("device__isnull", False)),
                            fields=("entry_id", "event", "device"),
                            name="notifications_once_a_device",
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="EntryCursor",
                fields=[
                    (
                        "id",
                        models.SmallIntegerField(
                            default=1, editable=False, primary_key=True, serialize=False
                        ),
                    ),
                    ("reached", models.BigIntegerField()),
                    (
                        "seen",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.BigIntegerField(), default=list, size=None
                        ),
                    ),
                    ("ahead", models.BigIntegerField()),
                    ("ahead_at", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                    ("ahead_horizon", models.BigIntegerField(null=True)),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(("id", 1)), name="notifications_one_cursor"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ToldExpiry",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("public_id", models.CharField(max_length=8)),
                    ("expires_at", models.DateTimeField()),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("public_id", "expires_at"), name="notifications_told_once"
                        )
                    ],
                },
            ),
        ),
        run_file("notifications/sql/entry_cursor.sql"),
    ]

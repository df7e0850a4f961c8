import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

import audit.models.entries
import core.triggers
from core.sql_files import watched


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("accounts", "0001_initial"),
        ("accounts", "0002_watch_memberships"),
        ("accounts", "0003_proofs"),
        ("accounts", "0004_independence"),
        ("accounts", "0005_single_person"),
        ("accounts", "0006_session_epoch"),
        ("accounts", "0007_role_changes"),
        ("accounts", "0008_used_names"),
    ]

    dependencies = [
        ("core", "0001_squashed"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="UsedName",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=150)),
                ("since", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
            ],
            options={
                "ordering": ["since"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "last_login",
                    models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                (
                    "first_name",
                    models.CharField(blank=True, max_length=150, verbose_name="first name"),
                ),
                (
                    "last_name",
                    models.CharField(blank=True, max_length=150, verbose_name="last name"),
                ),
                (
                    "email",
                    models.EmailField(blank=True, max_length=254, verbose_name="email address"),
                ),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="date joined"
                    ),
                ),
                ("time_zone", models.CharField(default="UTC", max_length=64)),
                ("unconfirmed_until", models.DateTimeField(editable=False, null=True)),
                ("confirmed_at", models.DateTimeField(editable=False, null=True)),
                ("session_epoch", models.PositiveIntegerField(default=0, editable=False)),
                (
                    "confirmed_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "invited_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "let_in_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "abstract": False,
            },
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="Agent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=100, unique=True, verbose_name="name")),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
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
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="agents",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="AgentToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("public_id", models.CharField(max_length=8, unique=True)),
                ("digest", models.BinaryField(max_length=32)),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tokens",
                        to="accounts.agent",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
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
                            ("sign_in", "Sign In"),
                            ("password", "Password"),
                            ("code", "Code"),
                        ],
                        max_length=8,
                    ),
                ),
                ("who", models.CharField(max_length=64)),
                ("address", models.CharField(blank=True, max_length=64)),
                ("browser", models.CharField(blank=True, max_length=64)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["who", "at"], name="accounts_attempt_who"),
                    models.Index(fields=["address", "at"], name="accounts_attempt_address"),
                    models.Index(fields=["at"], name="accounts_attempt_at"),
                ],
            },
        ),
        migrations.CreateModel(
            name="CodeApp",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sealed_secret", models.BinaryField()),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("last_step", models.BigIntegerField(default=0)),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="code_app",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Passkey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60, verbose_name="name")),
                ("credential_id", models.BinaryField(max_length=1024, unique=True)),
                ("public_key", models.BinaryField(max_length=4096)),
                ("rp_id", models.CharField(max_length=255)),
                ("sign_count", models.BigIntegerField()),
                ("synced", models.BooleanField()),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("last_used_at", models.DateTimeField(null=True)),
                ("removed_at", models.DateTimeField(null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="passkeys",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["created_at"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Proof",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "method",
                    models.CharField(
                        choices=[("passkey", "passkey"), ("totp", "one-time code")], max_length=7
                    ),
                ),
                ("statement", models.TextField()),
                ("statement_digest", models.CharField(max_length=64, unique=True)),
                ("assertion", models.TextField(blank=True)),
                ("origin", models.CharField(blank=True, max_length=255)),
                ("sign_count", models.BigIntegerField(null=True)),
                ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "passkey",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proofs",
                        to="accounts.passkey",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proofs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["at"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RoleChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("role", models.CharField(max_length=150)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("requested", "Requested"),
                            ("given", "Granted"),
                            ("refused", "Denied"),
                            ("taken", "Revoked"),
                        ],
                        default="requested",
                        max_length=9,
                    ),
                ),
                (
                    "asked_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="role_changes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SignInLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "made_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SinglePersonMode",
            fields=[
                (
                    "id",
                    models.SmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "began_at",
                    models.DateTimeField(
                        db_default=audit.models.entries.ClockTime(), editable=False
                    ),
                ),
                ("ended_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="accounts_one_single_person_mode"
                    )
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="singlepersonmode",
            trigger=pgtrigger.compiler.Trigger(
                name="only_ends",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        IF TG_OP = 'INSERT' AND (\n            NEW.ended_at IS NOT NULL OR (SELECT count(*) FROM accounts_user) > 1)\n        THEN\n            RAISE EXCEPTION 'single-person mode begins with the first person';\n        ELSIF TG_OP = 'UPDATE' AND (\n            OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL\n            OR (NEW.id, NEW.began_at) IS DISTINCT FROM (OLD.id, OLD.began_at))\n        THEN\n            RAISE EXCEPTION 'single-person mode only ends';\n        END IF;\n        RETURN NEW;\n    ",
                    hash="839d6dfafb365e7d65693b8e0d1dd23d3e0833ea",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_only_ends_a397e",
                    table="accounts_singlepersonmode",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="singlepersonmode",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'accounts_singlepersonmode rows are never changed or removed';",
                    hash="877a35b107b71edabb636ad9b5f61723febab4e5",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_ed5f2",
                    table="accounts_singlepersonmode",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="singlepersonmode",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'accounts_singlepersonmode rows are never changed or removed';",
                    hash="f46e8670664ca03c20ef697a557da456c7fe2ebc",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_20032",
                    table="accounts_singlepersonmode",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddField(
            model_name="usedname",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="names",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="user",
            index=models.Index(
                condition=models.Q(("unconfirmed_until__isnull", False)),
                fields=["unconfirmed_until"],
                name="accounts_user_unconfirmed",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="user",
            trigger=pgtrigger.compiler.Trigger(
                name="configuration",
                sql=core.triggers.StrictTriggerSql(
                    func="PERFORM core_configuration_changed(); RETURN NULL;",
                    hash="7f41c26d65e0791bbcc0c846bb4dd11c7481131e",
                    level="STATEMENT",
                    operation='INSERT OR DELETE OR UPDATE OF "username", "is_active", "unconfirmed_until"',
                    pgid="pgtrigger_configuration_de9cb",
                    table="accounts_user",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="user",
            trigger=pgtrigger.compiler.Trigger(
                name="session_epoch",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        NEW.session_epoch = OLD.session_epoch\n            + (CASE WHEN OLD.is_active AND NOT NEW.is_active THEN 1 ELSE 0 END);\n        RETURN NEW;\n    ",
                    hash="936bc50fa369ebd74fc8dc647f9e90d5c11d3249",
                    operation='UPDATE OF "is_active", "session_epoch"',
                    pgid="pgtrigger_session_epoch_37d01",
                    table="accounts_user",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="user",
            trigger=pgtrigger.compiler.Trigger(
                name="named_for_good",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        IF TG_OP = 'UPDATE' THEN\n            IF NEW.username = OLD.username THEN\n                RETURN NULL;\n            ELSIF NOT EXISTS (\n                SELECT FROM audit_entry e WHERE e.action = 'person.renamed'\n                AND e.transaction = pg_current_xact_id()\n                AND e.details ->> 'person_id' = NEW.id::text\n                AND e.details ->> 'after' = NEW.username)\n            THEN\n                RAISE EXCEPTION 'nobody is renamed without an entry';\n            END IF;\n        END IF;\n        INSERT INTO accounts_usedname (name, person_id) VALUES (NEW.username, NEW.id);\n        RETURN NULL;\n    ",
                    hash="2f0556c45874c774535a2ef8014d24899d598b26",
                    operation='INSERT OR UPDATE OF "username"',
                    pgid="pgtrigger_named_for_good_87b02",
                    table="accounts_user",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="agent",
            trigger=pgtrigger.compiler.Trigger(
                name="configuration",
                sql=core.triggers.StrictTriggerSql(
                    func="PERFORM core_configuration_changed(); RETURN NULL;",
                    hash="e3cfe93775dfed55ece7edae80c19ef2b480b3f7",
                    level="STATEMENT",
                    operation="INSERT OR DELETE OR UPDATE",
                    pgid="pgtrigger_configuration_ed1a3",
                    table="accounts_agent",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="agent",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_creator",
                sql=core.triggers.StrictTriggerSql(
                    func="\n            IF ROW(NEW.created_by_id) IS DISTINCT FROM ROW(OLD.created_by_id) THEN\n                RAISE EXCEPTION 'created_by_id: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="bc10e026440be851cead8078b21113e832d69612",
                    operation="UPDATE",
                    pgid="pgtrigger_keep_creator_8de7b",
                    table="accounts_agent",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="agenttoken",
            trigger=pgtrigger.compiler.Trigger(
                name="configuration",
                sql=core.triggers.StrictTriggerSql(
                    func="PERFORM core_configuration_changed(); RETURN NULL;",
                    hash="c7e0d6d7f8f01fd71ad19be0b9332a21a66f6fc5",
                    level="STATEMENT",
                    operation='INSERT OR DELETE OR UPDATE OF "revoked_at", "expires_at", "digest", "agent_id"',
                    pgid="pgtrigger_configuration_0924c",
                    table="accounts_agenttoken",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="agenttoken",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_issuer",
                sql=core.triggers.StrictTriggerSql(
                    func="\n            IF ROW(NEW.agent_id, NEW.created_by_id) IS DISTINCT FROM ROW(OLD.agent_id, OLD.created_by_id) THEN\n                RAISE EXCEPTION 'agent_id, created_by_id: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                    hash="0454c915e1262884062510b3558c090507772d0b",
                    operation="UPDATE",
                    pgid="pgtrigger_keep_issuer_cc1f3",
                    table="accounts_agenttoken",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="proof",
            constraint=models.CheckConstraint(
                condition=models.Q(("method", "totp"), ("passkey__isnull", False), _connector="OR"),
                name="accounts_proof_has_its_passkey",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="proof",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'accounts_proof rows are never changed or removed';",
                    hash="a8157852038e38345ad4ffc677a333e479f06411",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_5d03a",
                    table="accounts_proof",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="proof",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'accounts_proof rows are never changed or removed';",
                    hash="e914472f80abd2299f6cb4edda1209122062a1aa",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_3581b",
                    table="accounts_proof",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="proof",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'accounts_proof rows are never changed or removed';",
                    hash="6252e639f64df2e6d2a489076766890ccdf093c9",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_10245",
                    table="accounts_proof",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="rolechange",
            index=models.Index(fields=["decided_at"], name="accounts_rolechange_decided"),
        ),
        migrations.AddConstraint(
            model_name="rolechange",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "requested")),
                fields=("person", "role"),
                name="accounts_one_request_a_role",
            ),
        ),
        migrations.AddConstraint(
            model_name="usedname",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("name"), name="accounts_a_name_is_used_once"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="usedname",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'accounts_usedname rows are never changed or removed';",
                    hash="f1fae4bfd302e2fec56b315a8e71273f54c27fba",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_e0a17",
                    table="accounts_usedname",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="usedname",
            trigger=pgtrigger.compiler.Trigger(
                name="no_delete",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'accounts_usedname rows are never changed or removed';",
                    hash="5b9a88e56991b5b552bedff3923e24c62b1c36d8",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_no_delete_6cc43",
                    table="accounts_usedname",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="usedname",
            trigger=pgtrigger.compiler.Trigger(
                name="no_truncate",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'accounts_usedname rows are never changed or removed';",
                    hash="9f8bd9012ea9b5bdcfad34e0e2531be95e1971ea",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_no_truncate_75021",
                    table="accounts_usedname",
                    when="BEFORE",
                ),
            ),
        ),
        *watched("accounts_user_groups"),
    ]

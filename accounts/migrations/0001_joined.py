import uuid

import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import pgtrigger.compiler
from django.conf import settings
from django.db import migrations, models

import audit.models.entries
import core.triggers
from core.create_models import CreateModels
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
        ("accounts", "0001_squashed"),
        ("accounts", "0002_role_changes_at_the_host"),
        ("accounts", "0003_agent_hold"),
        ("accounts", "0004_language"),
        ("accounts", "0005_second_factor_attempts"),
        ("accounts", "0006_recovery_codes"),
        ("accounts", "0007_sessions"),
        ("accounts", "0008_password_reset"),
        ("accounts", "0009_required_factors"),
        ("accounts", "0010_passkey_attempts"),
        ("accounts", "0011_watch_groups"),
        ("accounts", "0012_identities"),
        ("accounts", "0013_identity_tombstones"),
        ("accounts", "0014_provider_proofs"),
        ("accounts", "0015_scim"),
        ("accounts", "0016_service_accounts"),
        ("accounts", "0017_custom_roles"),
        ("accounts", "0018_access_review"),
        ("accounts", "0019_slack_attempts"),
        ("accounts", "0020_factor_reset"),
        ("accounts", "0021_rejected_attempts"),
        ("accounts", "0022_agent_clients"),
        ("accounts", "0023_agent_sign_in"),
        ("accounts", "0024_agent_addresses"),
        ("accounts", "0025_workloads"),
        ("accounts", "0026_attempts_of_links"),
        ("accounts", "0027_registered_from"),
        ("accounts", "0028_devices"),
        ("accounts", "0029_dpop"),
        ("accounts", "0030_signing_clients"),
    ]

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("core", "0001_joined"),
    ]

    operations = [
        CreateModels(
            migrations.CreateModel(
                name="SignInClient",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("client_id", models.CharField(max_length=255, unique=True)),
                    (
                        "kind",
                        models.CharField(
                            choices=[("document", "Document"), ("registered", "Registered")],
                            max_length=10,
                        ),
                    ),
                    ("name", models.CharField(blank=True, max_length=100)),
                    ("redirect_uris", models.JSONField(default=list)),
                    ("device_flow", models.BooleanField(db_default=False, default=False)),
                    ("signs_requests", models.BooleanField(db_default=False, default=False)),
                    (
                        "signing_alg",
                        models.CharField(blank=True, db_default="", default="", max_length=10),
                    ),
                    ("keys", models.JSONField(db_default=[], default=list)),
                    (
                        "keys_url",
                        models.CharField(blank=True, db_default="", default="", max_length=500),
                    ),
                    (
                        "network",
                        models.CharField(blank=True, db_default="", default="", max_length=50),
                    ),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("read_at", models.DateTimeField(default=django.utils.timezone.now)),
                    ("used_at", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="keep_client",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.client_id, NEW.kind) IS DISTINCT FROM ROW(OLD.client_id, OLD.kind) THEN\n                RAISE EXCEPTION 'client_id, kind: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="bee5e2b5e67ccf61d6f38d102d2ebe4528d6740b",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_client_73d3b",
                                table="accounts_signinclient",
                                when="BEFORE",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="UsedProof",
                fields=[
                    ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                    ("request", models.UUIDField()),
                    ("expires_at", models.DateTimeField()),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["expires_at"], name="accounts_proof_ends")],
                },
            ),
            migrations.CreateModel(
                name="UsedAssertion",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("digest", models.CharField(max_length=64, unique=True)),
                    ("expires_at", models.DateTimeField()),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [
                        models.Index(fields=["expires_at"], name="accounts_assertion_ends")
                    ],
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
                    (
                        "language",
                        models.CharField(blank=True, default="", editable=False, max_length=16),
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
                        "invited_by",
                        models.ForeignKey(
                            editable=False,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("unconfirmed_until", models.DateTimeField(editable=False, null=True)),
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
                    ("confirmed_at", models.DateTimeField(editable=False, null=True)),
                    ("reset_by_mail_since", models.DateTimeField(editable=False, null=True)),
                    ("session_epoch", models.PositiveIntegerField(default=0, editable=False)),
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
                    "permissions": [
                        ("view_access_review", "Can view who has what access"),
                        ("sign_access_review", "Can sign off who has what access"),
                    ],
                    "abstract": False,
                    "indexes": [
                        models.Index(
                            condition=models.Q(("unconfirmed_until__isnull", False)),
                            fields=["unconfirmed_until"],
                            name="accounts_user_unconfirmed",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
                managers=[
                    ("objects", django.contrib.auth.models.UserManager()),
                ],
            ),
            migrations.CreateModel(
                name="CustomRole",
                fields=[
                    (
                        "group",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.PROTECT,
                            primary_key=True,
                            related_name="custom_role",
                            serialize=False,
                            to="auth.group",
                        ),
                    ),
                    ("description", models.CharField(max_length=200, verbose_name="description")),
                    (
                        "scoped_permissions",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=60), default=list, size=None
                        ),
                    ),
                    (
                        "server_tags",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=40),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
                    (
                        "toolset_tags",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=40),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
                    (
                        "agent_tags",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=40),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    (
                        "created_by",
                        models.ForeignKey(
                            editable=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("retired_at", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="keep_maker",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.group_id, NEW.created_by_id, NEW.created_at) IS DISTINCT FROM ROW(OLD.group_id, OLD.created_by_id, OLD.created_at) THEN\n                RAISE EXCEPTION 'group_id, created_by_id, created_at: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="cc6a5352daea73948e436d99ab25d66a5642a105",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_maker_5fb1e",
                                table="accounts_customrole",
                                when="BEFORE",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ScimToken",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("issuer", models.CharField(max_length=500)),
                    ("public_id", models.CharField(max_length=8, unique=True)),
                    ("digest", models.BinaryField(max_length=32)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    (
                        "created_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("is_confirmed", models.BooleanField()),
                    (
                        "replaces",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="accounts.scimtoken",
                        ),
                    ),
                    ("expires_at", models.DateTimeField()),
                    ("revoked_at", models.DateTimeField(null=True)),
                    ("last_used_at", models.DateTimeField(null=True)),
                ],
                options={
                    "ordering": ["-created_at"],
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="keep_issuer",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.issuer, NEW.digest, NEW.created_by_id) IS DISTINCT FROM ROW(OLD.issuer, OLD.digest, OLD.created_by_id) THEN\n                RAISE EXCEPTION 'issuer, digest, created_by_id: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="48f875b52f6e4c47cdd19632066f428f5ac92e38",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_issuer_f74c0",
                                table="accounts_scimtoken",
                                when="BEFORE",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ScimUser",
                fields=[
                    (
                        "id",
                        models.UUIDField(
                            default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                        ),
                    ),
                    ("issuer", models.CharField(max_length=500)),
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="scim_users",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("user_name", models.CharField(max_length=255)),
                    ("external_id", models.CharField(blank=True, max_length=255)),
                    ("attributes", models.JSONField(default=dict)),
                    ("is_active", models.BooleanField(null=True)),
                    ("disabled_epoch", models.PositiveIntegerField(null=True)),
                    ("version", models.PositiveIntegerField(default=1)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                    ("deleted_at", models.DateTimeField(null=True)),
                ],
                options={
                    "ordering": ["created_at", "id"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("issuer", "person"), name="accounts_scim_person"
                        ),
                        models.UniqueConstraint(
                            models.F("issuer"),
                            django.db.models.functions.text.Lower("user_name"),
                            condition=models.Q(("deleted_at", None)),
                            name="accounts_scim_user_name",
                        ),
                        models.UniqueConstraint(
                            condition=models.Q(
                                ("deleted_at", None), models.Q(("external_id", ""), _negated=True)
                            ),
                            fields=("issuer", "external_id"),
                            name="accounts_scim_external_id",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="keep_person",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.issuer, NEW.person_id) IS DISTINCT FROM ROW(OLD.issuer, OLD.person_id) THEN\n                RAISE EXCEPTION 'issuer, person_id: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="6cb37cc163a098484d2bf46c784f79c43954c812",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_person_f042e",
                                table="accounts_scimuser",
                                when="BEFORE",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ScimGroup",
                fields=[
                    (
                        "id",
                        models.UUIDField(
                            default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                        ),
                    ),
                    ("issuer", models.CharField(max_length=500)),
                    ("display_name", models.CharField(max_length=255)),
                    ("external_id", models.CharField(blank=True, max_length=255)),
                    ("first_names", models.JSONField(default=list)),
                    ("version", models.PositiveIntegerField(default=1)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                    (
                        "members",
                        models.ManyToManyField(related_name="groups", to="accounts.scimuser"),
                    ),
                ],
                options={
                    "ordering": ["created_at", "id"],
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="ServiceAccount",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("name", models.SlugField(max_length=60, unique=True, verbose_name="name")),
                    ("purpose", models.CharField(max_length=200, verbose_name="purpose")),
                    (
                        "scopes",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=60), size=None
                        ),
                    ),
                    ("enabled", models.BooleanField(default=True)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    (
                        "created_by",
                        models.ForeignKey(
                            editable=False,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                ],
                options={
                    "ordering": ["name"],
                    "default_permissions": ("add", "change", "view"),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="keep_maker",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.name, NEW.created_by_id, NEW.created_at) IS DISTINCT FROM ROW(OLD.name, OLD.created_by_id, OLD.created_at) THEN\n                RAISE EXCEPTION 'name, created_by_id, created_at: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="e66665bdef2619cced2ac8217167262105258c55",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_maker_de244",
                                table="accounts_serviceaccount",
                                when="BEFORE",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ServiceToken",
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
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="tokens",
                            to="accounts.serviceaccount",
                        ),
                    ),
                    ("public_id", models.CharField(max_length=8, unique=True)),
                    ("digest", models.BinaryField(max_length=32)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    (
                        "created_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("expires_at", models.DateTimeField()),
                    ("revoked_at", models.DateTimeField(null=True)),
                    ("last_used_at", models.DateTimeField(null=True)),
                    ("last_address", models.CharField(blank=True, default="", max_length=64)),
                ],
                options={
                    "ordering": ["-created_at"],
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="keep_issuer",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.account_id, NEW.created_by_id, NEW.digest) IS DISTINCT FROM ROW(OLD.account_id, OLD.created_by_id, OLD.digest) THEN\n                RAISE EXCEPTION 'account_id, created_by_id, digest: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="bedc76dd23b7441be6d5a7ba62f0955b50293ec6",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_issuer_ef029",
                                table="accounts_servicetoken",
                                when="BEFORE",
                            ),
                        )
                    ],
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
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
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
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="names",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("since", models.DateTimeField(db_default=audit.models.entries.ClockTime())),
                ],
                options={
                    "ordering": ["since"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            django.db.models.functions.text.Lower("name"),
                            name="accounts_a_name_is_used_once",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
            migrations.CreateModel(
                name="FactorRequirement",
                fields=[
                    (
                        "group",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            primary_key=True,
                            related_name="factor_requirement",
                            serialize=False,
                            to="auth.group",
                        ),
                    ),
                ],
                options={
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
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="role_changes",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("role", models.CharField(max_length=150)),
                    ("source", models.CharField(blank=True, default="", max_length=100)),
                    (
                        "state",
                        models.CharField(
                            choices=[
                                ("requested", "Requested"),
                                ("given", "Granted"),
                                ("refused", "Denied"),
                                ("taken", "Revoked"),
                                ("entered", "Sign-in link created at the host"),
                                ("confirmed", "Confirmed at the host"),
                                ("reset", "Second factor removed"),
                            ],
                            default="requested",
                            max_length=9,
                        ),
                    ),
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
                        "asked_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
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
                    ("decided_at", models.DateTimeField(null=True)),
                ],
                options={
                    "ordering": ["-pk"],
                    "default_permissions": (),
                    "indexes": [
                        models.Index(fields=["decided_at"], name="accounts_rolechange_decided")
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            condition=models.Q(("state", "requested")),
                            fields=("person", "role"),
                            name="accounts_one_request_a_role",
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="FactorReset",
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
                            related_name="factor_resets",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("reason", models.CharField(max_length=300)),
                    (
                        "state",
                        models.CharField(
                            choices=[
                                ("requested", "Requested"),
                                ("done", "Confirmed"),
                                ("refused", "Denied"),
                            ],
                            default="requested",
                            max_length=9,
                        ),
                    ),
                    (
                        "asked_by",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "asked_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
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
                    ("decided_at", models.DateTimeField(null=True)),
                ],
                options={
                    "ordering": ["-pk"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            condition=models.Q(("state", "requested")),
                            fields=("person",),
                            name="accounts_one_factor_reset",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="keep_factor_reset",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.person_id, NEW.reason, NEW.asked_by_id, NEW.asked_at) IS DISTINCT FROM ROW(OLD.person_id, OLD.reason, OLD.asked_by_id, OLD.asked_at) THEN\n                RAISE EXCEPTION 'person_id, reason, asked_by_id, asked_at: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="e4ea68c59ebdec9fde44e2d7368c1b551d3ee8e0",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_factor_reset_e1026",
                                table="accounts_factorreset",
                                when="BEFORE",
                            ),
                        )
                    ],
                },
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
                    (
                        "owner",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="agents",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                    (
                        "hold_s",
                        models.PositiveSmallIntegerField(
                            blank=True,
                            null=True,
                            validators=[
                                django.core.validators.MinValueValidator(1),
                                django.core.validators.MaxValueValidator(55),
                            ],
                            verbose_name="first answer within seconds",
                        ),
                    ),
                    ("requires_dpop", models.BooleanField(db_default=False, default=False)),
                    (
                        "tags",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=40),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
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
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
            migrations.CreateModel(
                name="AgentAddress",
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
                            db_constraint=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="addresses",
                            to="accounts.agent",
                        ),
                    ),
                    ("address", models.CharField(max_length=50)),
                    ("first_at", models.DateTimeField()),
                    ("last_at", models.DateTimeField()),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [models.Index(fields=["last_at"], name="accounts_address_last")],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("agent", "address"), name="accounts_address_once"
                        )
                    ],
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
                    (
                        "agent",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="tokens",
                            to="accounts.agent",
                        ),
                    ),
                    ("public_id", models.CharField(max_length=8, unique=True)),
                    ("digest", models.BinaryField(max_length=32)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
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
                    ("expires_at", models.DateTimeField()),
                    ("revoked_at", models.DateTimeField(blank=True, null=True)),
                    ("last_used_at", models.DateTimeField(blank=True, null=True)),
                    (
                        "issuer",
                        models.CharField(blank=True, db_default="", default="", max_length=500),
                    ),
                    (
                        "client_id",
                        models.CharField(blank=True, db_default="", default="", max_length=255),
                    ),
                    (
                        "resource",
                        models.CharField(blank=True, db_default="", default="", max_length=700),
                    ),
                    ("jkt", models.CharField(blank=True, db_default="", default="", max_length=43)),
                ],
                options={
                    "ordering": ["-created_at"],
                    "constraints": [
                        models.UniqueConstraint(
                            condition=models.Q(
                                ("resource", ""),
                                ("revoked_at", None),
                                models.Q(("issuer", ""), _negated=True),
                            ),
                            fields=("issuer", "client_id"),
                            name="accounts_one_agent_a_client",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
                            name="keep_issuer",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.agent_id, NEW.created_by_id, NEW.issuer, NEW.client_id, NEW.resource, NEW.jkt) IS DISTINCT FROM ROW(OLD.agent_id, OLD.created_by_id, OLD.issuer, OLD.client_id, OLD.resource, OLD.jkt) THEN\n                RAISE EXCEPTION 'agent_id, created_by_id, issuer, client_id, resource, jkt: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="cee77521b23ced2535da6182eef815eb47d88986",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_issuer_cc1f3",
                                table="accounts_agenttoken",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="AuthorizationCode",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("digest", models.BinaryField(max_length=32, unique=True)),
                    (
                        "client",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="accounts.signinclient",
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
                    (
                        "agent",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="accounts.agent",
                        ),
                    ),
                    ("resource", models.CharField(max_length=700)),
                    ("redirect_uri", models.TextField()),
                    ("challenge", models.CharField(max_length=43)),
                    ("jkt", models.CharField(blank=True, db_default="", default="", max_length=43)),
                    ("expires_at", models.DateTimeField()),
                    ("used_at", models.DateTimeField(null=True)),
                    (
                        "token",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="accounts.agenttoken",
                        ),
                    ),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="DeviceCode",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("digest", models.BinaryField(max_length=32, unique=True)),
                    ("user_digest", models.BinaryField(max_length=32, unique=True)),
                    ("client_id", models.CharField(max_length=255)),
                    ("resource", models.CharField(max_length=700)),
                    ("network", models.CharField(blank=True, max_length=50)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("expires_at", models.DateTimeField()),
                    ("interval_s", models.PositiveSmallIntegerField()),
                    ("polled_at", models.DateTimeField(null=True)),
                    ("decided_at", models.DateTimeField(null=True)),
                    (
                        "person",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "agent",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="accounts.agent",
                        ),
                    ),
                    ("used_at", models.DateTimeField(null=True)),
                    (
                        "token",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="accounts.agenttoken",
                        ),
                    ),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="RefreshToken",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "token",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="refreshing",
                            to="accounts.agenttoken",
                        ),
                    ),
                    ("digest", models.BinaryField(max_length=32, unique=True)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("expires_at", models.DateTimeField()),
                    ("used_at", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="WorkloadIdentity",
                fields=[
                    (
                        "token",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.PROTECT,
                            primary_key=True,
                            related_name="workload",
                            serialize=False,
                            to="accounts.agenttoken",
                        ),
                    ),
                    (
                        "kind",
                        models.CharField(
                            choices=[("key", "Key"), ("issuer", "Issuer")], max_length=6
                        ),
                    ),
                    ("keys", models.JSONField(default=list)),
                    ("keys_url", models.CharField(blank=True, max_length=500)),
                    ("audience", models.CharField(blank=True, max_length=500)),
                    ("subject", models.CharField(blank=True, max_length=500)),
                    ("claims", models.JSONField(default=dict)),
                ],
                options={
                    "default_permissions": (),
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="keep_workload",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.kind, NEW.keys, NEW.keys_url, NEW.audience, NEW.subject, NEW.claims) IS DISTINCT FROM ROW(OLD.kind, OLD.keys, OLD.keys_url, OLD.audience, OLD.subject, OLD.claims) THEN\n                RAISE EXCEPTION 'kind, keys, keys_url, audience, subject, claims: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="ffcaf7bcfc4307299494d84c8fe2aa75bb8f514d",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_workload_8af31",
                                table="accounts_workloadidentity",
                                when="BEFORE",
                            ),
                        )
                    ],
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
                    (
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("digest", models.BinaryField(max_length=32, unique=True)),
                    (
                        "made_by",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("expires_at", models.DateTimeField()),
                    ("used_at", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
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
                                ("factor", "Factor"),
                                ("reset", "Reset"),
                                ("passkey", "Passkey"),
                                ("provider", "Provider"),
                                ("scim", "Scim"),
                                ("slack", "Slack"),
                                ("link", "Link"),
                                ("rejected", "Rejected"),
                                ("device", "Device"),
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
                name="Passkey",
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
                            related_name="passkeys",
                            to=settings.AUTH_USER_MODEL,
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
                ],
                options={
                    "ordering": ["created_at"],
                    "default_permissions": (),
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
                    (
                        "person",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="code_app",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("sealed_secret", models.BinaryField()),
                    ("confirmed_at", models.DateTimeField(null=True)),
                    ("last_step", models.BigIntegerField(default=0)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="Identity",
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
                            related_name="identities",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("issuer", models.CharField(max_length=500)),
                    ("subject", models.CharField(max_length=255)),
                    ("label", models.CharField(blank=True, max_length=200)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("last_used_at", models.DateTimeField(null=True)),
                    ("disconnected_at", models.DateTimeField(null=True)),
                    ("mapped_groups", models.JSONField(default=list)),
                ],
                options={
                    "ordering": ["created_at"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("issuer", "subject"), name="accounts_one_person_an_identity"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="9075c6ede9ab6de0bfb961cbbc2c512bbd0f2d21",
                                level="STATEMENT",
                                operation='INSERT OR DELETE OR UPDATE OF "disconnected_at"',
                                pgid="pgtrigger_configuration_0fb45",
                                table="accounts_identity",
                                when="AFTER",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="keep_identity",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF ROW(NEW.person_id, NEW.issuer, NEW.subject) IS DISTINCT FROM ROW(OLD.person_id, OLD.issuer, OLD.subject) THEN\n                RAISE EXCEPTION 'person_id, issuer, subject: written once, never changed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="b33ffbd398f8a95f2f4ae2c431685570b78abfe7",
                                operation="UPDATE",
                                pgid="pgtrigger_keep_identity_9f664",
                                table="accounts_identity",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="UsedLogoutToken",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("digest", models.CharField(max_length=64, unique=True)),
                    ("expires_at", models.DateTimeField()),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="BrowserSession",
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
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("key", models.CharField(max_length=40, unique=True)),
                    ("user_agent", models.CharField(max_length=300)),
                    ("address", models.CharField(max_length=64)),
                    (
                        "identity",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.SET_NULL,
                            related_name="+",
                            to="accounts.identity",
                        ),
                    ),
                    ("provider_sid", models.CharField(blank=True, default="", max_length=255)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("last_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="RecoveryCode",
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
                            related_name="recovery_codes",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("digest", models.BinaryField(max_length=32)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("used_at", models.DateTimeField(null=True)),
                ],
                options={
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
                        "person",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="proofs",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    (
                        "method",
                        models.CharField(
                            choices=[
                                ("passkey", "passkey"),
                                ("totp", "one-time code"),
                                ("oidc", "identity provider"),
                            ],
                            max_length=7,
                        ),
                    ),
                    ("statement", models.TextField()),
                    ("statement_digest", models.CharField(max_length=64, unique=True)),
                    (
                        "passkey",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="proofs",
                            to="accounts.passkey",
                        ),
                    ),
                    ("assertion", models.TextField(blank=True)),
                    ("origin", models.CharField(blank=True, max_length=255)),
                    ("sign_count", models.BigIntegerField(null=True)),
                    ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ],
                options={
                    "ordering": ["at"],
                    "default_permissions": (),
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                ("method__in", ["totp", "oidc"]),
                                ("passkey__isnull", False),
                                _connector="OR",
                            ),
                            name="accounts_proof_has_its_passkey",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                        pgtrigger.compiler.Trigger(
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
                    ],
                },
            ),
        ),
        *watched("accounts_user_groups", "auth_group"),
    ]

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import pgtrigger.compiler
from django.conf import settings
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models

import core.triggers
import registry.models.servers
import registry.models.tools
import registry.models.toolsets
from core.create_models import CreateModels
from core.sql_files import watched


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("registry", "0001_initial"),
        ("registry", "0002_watch_memberships"),
        ("registry", "0003_held_is_not_offered"),
        ("registry", "0004_automatic_mode"),
        ("registry", "0005_search"),
        ("registry", "0006_list_what_is_known"),
        ("registry", "0007_watch_tags"),
        ("registry", "0008_facets"),
        ("registry", "0009_search_at_once"),
        ("registry", "0010_repeats_and_own_tools"),
        ("registry", "0011_items"),
        ("registry", "0012_shown_tools"),
        ("registry", "0013_by_events"),
        ("registry", "0014_relays"),
        ("registry", "0015_subscriptions"),
        ("registry", "0016_tells_of_lists"),
        ("registry", "0017_methods_of_extensions"),
        ("registry", "0018_confirmed_read_only"),
        ("registry", "0001_squashed"),
        ("registry", "0002_cancel_is_final"),
        ("registry", "0003_agent_names"),
        ("registry", "0004_lists_unheard"),
        ("registry", "0005_toolset_hold"),
        ("registry", "0006_spoken_revision"),
        ("registry", "0007_instructions"),
        ("registry", "0008_bigrams"),
        ("registry", "0009_scans"),
        ("registry", "0010_result_rules"),
        ("registry", "0011_watched_columns"),
        ("registry", "0012_deleted_servers"),
        ("registry", "0013_icons"),
        ("registry", "0014_relay_labels"),
        ("registry", "0015_tags"),
        ("registry", "0016_tool_labels"),
        ("registry", "0017_search_mode"),
        ("registry", "0018_links_marks_patterns"),
        ("registry", "0019_server_result_rules"),
        ("registry", "0020_managed_parts"),
        ("registry", "0021_server_credentials"),
        ("registry", "0022_agent_sign_in"),
        ("registry", "0023_api_documents"),
        ("registry", "0024_registry_readers"),
        ("registry", "0025_stored_findings"),
        ("registry", "0026_server_origins"),
    ]

    dependencies = [
        ("accounts", "0001_joined"),
    ]

    operations = [
        TrigramExtension(),
        CreateModels(
            migrations.CreateModel(
                name="Subscription",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("session", models.CharField(max_length=64)),
                    (
                        "agent",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="accounts.agent",
                        ),
                    ),
                    ("uri", models.TextField()),
                    ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("session", "uri"), name="registry_subscribed_once"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ManagedPart",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("section", models.CharField(max_length=20)),
                    ("name", models.CharField(blank=True, max_length=200)),
                    ("source", models.CharField(max_length=500)),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("section", "name"), name="registry_managed_once"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="Tag",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("name", models.SlugField(max_length=32, unique=True, verbose_name="name")),
                ],
                options={
                    "ordering": ["name"],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="5ea39f60da0a1e7ec08fd200b9df254ea00505c5",
                                level="STATEMENT",
                                operation='INSERT OR DELETE OR UPDATE OF "name"',
                                pgid="pgtrigger_configuration_c3902",
                                table="registry_tag",
                                when="AFTER",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="Server",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("slug", models.SlugField(max_length=32, unique=True, verbose_name="name")),
                    ("title", models.CharField(blank=True, max_length=200, verbose_name="title")),
                    (
                        "transport",
                        models.CharField(
                            choices=[
                                ("http", "HTTP"),
                                ("stdio", "Command (stdio)"),
                                ("api", "HTTP API (OpenAPI)"),
                            ],
                            max_length=5,
                        ),
                    ),
                    ("url", models.URLField(blank=True, max_length=2000, verbose_name="URL")),
                    (
                        "command",
                        models.CharField(blank=True, max_length=100, verbose_name="command"),
                    ),
                    ("argv", models.JSONField(blank=True, default=list)),
                    ("sealed_headers", models.BinaryField(null=True)),
                    ("sealed_credential", models.BinaryField(null=True)),
                    (
                        "sign_in",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("", "Shared: the credential of the server’s page"),
                                ("oauth", "Shared: one account, by OAuth"),
                                ("oauth-person", "Personal: each user’s own account, by OAuth"),
                                ("key-person", "Personal: each user’s own key in a header"),
                            ],
                            db_default="",
                            default="",
                            max_length=12,
                            verbose_name="sign-in",
                        ),
                    ),
                    ("connection_version", models.PositiveIntegerField(default=1, editable=False)),
                    (
                        "owner",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="servers",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
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
                    ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                    (
                        "publish_on_discovery",
                        models.BooleanField(
                            default=False, verbose_name="publish on first discovery"
                        ),
                    ),
                    ("result_rules", models.JSONField(db_default={}, default=dict, editable=False)),
                    (
                        "relays",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(
                                choices=[
                                    ("elicitation", "Elicitation: questions to the agent's user"),
                                    ("roots", "Roots: the folders that the agent works in"),
                                    ("sampling", "Sampling: answers of the agent's model"),
                                ],
                                max_length=11,
                            ),
                            blank=True,
                            db_default=["elicitation", "roots"],
                            default=registry.models.servers.usual_relays,
                            size=None,
                            verbose_name="may ask of agents",
                        ),
                    ),
                    (
                        "methods",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=100),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                            verbose_name="methods of extensions",
                        ),
                    ),
                    ("revision", models.CharField(blank=True, editable=False, max_length=10)),
                    (
                        "wanted_revision",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("", "The newest that both sides know"),
                                ("2026-07-28", "2026-07-28"),
                                ("2025-11-25", "2025-11-25"),
                                ("2025-06-18", "2025-06-18"),
                                ("2025-03-26", "2025-03-26"),
                                ("2024-11-05", "2024-11-05"),
                            ],
                            db_default="",
                            default="",
                            max_length=10,
                            verbose_name="revision of the protocol",
                        ),
                    ),
                    (
                        "named_revisions",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=10),
                            db_default=[],
                            default=list,
                            editable=False,
                            size=None,
                        ),
                    ),
                    (
                        "by_events",
                        models.BooleanField(db_default=False, default=False, editable=False),
                    ),
                    ("server_info", models.JSONField(default=dict, editable=False)),
                    (
                        "icon",
                        models.ForeignKey(
                            editable=False,
                            null=True,
                            on_delete=django.db.models.deletion.SET_NULL,
                            related_name="+",
                            to="registry.icon",
                        ),
                    ),
                    (
                        "tells_of_updates",
                        models.BooleanField(db_default=False, default=False, editable=False),
                    ),
                    (
                        "tells_of_lists",
                        models.BooleanField(db_default=False, default=False, editable=False),
                    ),
                    (
                        "lists_unheard",
                        models.CharField(blank=True, db_default="", editable=False, max_length=500),
                    ),
                    (
                        "health",
                        models.CharField(
                            choices=[
                                ("unknown", "Not yet reached"),
                                ("ok", "Reachable"),
                                ("down", "Unreachable"),
                            ],
                            default="unknown",
                            editable=False,
                            max_length=7,
                        ),
                    ),
                    ("health_reason", models.TextField(blank=True, editable=False)),
                    (
                        "health_since",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("discovered_at", models.DateTimeField(editable=False, null=True)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("deleted_at", models.DateTimeField(editable=False, null=True)),
                ],
                options={
                    "ordering": ["slug"],
                    "permissions": [
                        ("operate_server", "Can register servers and publish definitions")
                    ],
                    "constraints": [
                        models.CheckConstraint(
                            condition=models.Q(
                                ("deleted_at__isnull", True), ("enabled", False), _connector="OR"
                            ),
                            name="registry_deleted_is_off",
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="d1ea9556442362d81484a5b4fde9a16381cba0b5",
                                level="STATEMENT",
                                operation='INSERT OR DELETE OR UPDATE OF "slug", "transport", "url", "command", "argv", "sealed_headers", "sealed_credential", "connection_version", "sign_in", "enabled", "relays", "result_rules", "methods", "revision", "wanted_revision", "by_events", "tells_of_updates"',
                                pgid="pgtrigger_configuration_b8fcc",
                                table="registry_server",
                                when="AFTER",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ApiDocument",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "server",
                        models.OneToOneField(
                            editable=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="api_document",
                            to="registry.server",
                        ),
                    ),
                    ("body", models.TextField()),
                    ("digest", models.CharField(max_length=64)),
                    ("source", models.URLField(blank=True, max_length=2000)),
                    ("others", models.JSONField(default=dict)),
                    ("names", models.JSONField(default=dict)),
                    ("chosen", models.JSONField(default=dict)),
                    ("base", models.URLField(max_length=2000)),
                    ("coverage", models.JSONField(default=list)),
                    ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="Discovery",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="discoveries",
                            to="registry.server",
                        ),
                    ),
                    ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ("succeeded", models.BooleanField()),
                    ("summary", models.TextField(blank=True)),
                    ("on_its_word", models.BooleanField(db_default=False, default=False)),
                    ("moved", models.BooleanField(db_default=False, default=False)),
                ],
                options={
                    "verbose_name_plural": "discoveries",
                    "ordering": ["-at"],
                },
            ),
            migrations.CreateModel(
                name="ServerClient",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "server",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="client",
                            to="registry.server",
                        ),
                    ),
                    ("header", models.CharField(blank=True, max_length=100)),
                    ("client_id", models.CharField(blank=True, max_length=2000)),
                    ("sealed_secret", models.BinaryField(null=True)),
                    (
                        "registration",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("", "Not registered yet"),
                                ("given", "Client ID given by the server's operator"),
                                ("document", "Client ID metadata document"),
                                ("dynamic", "Registered by itself"),
                            ],
                            max_length=8,
                        ),
                    ),
                    (
                        "scopes",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=200),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
                    ("issuer", models.CharField(blank=True, editable=False, max_length=2000)),
                    ("resource", models.CharField(blank=True, editable=False, max_length=2000)),
                    ("metadata", models.JSONField(default=dict, editable=False)),
                    (
                        "named_scopes",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=200),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
                ],
            ),
            migrations.CreateModel(
                name="ServerCredential",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="credentials",
                            to="registry.server",
                        ),
                    ),
                    (
                        "person",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="server_credentials",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("issuer", models.CharField(blank=True, max_length=2000)),
                    ("generation", models.PositiveIntegerField(default=1)),
                    ("sealed", models.BinaryField(null=True)),
                    ("expires_at", models.DateTimeField(null=True)),
                    (
                        "scopes",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=200),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
                    (
                        "wanted_scopes",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=200),
                            blank=True,
                            db_default=[],
                            default=list,
                            size=None,
                        ),
                    ),
                    ("ended", models.CharField(blank=True, max_length=300)),
                    ("connected_at", models.DateTimeField(default=django.utils.timezone.now)),
                    ("refreshed_at", models.DateTimeField(null=True)),
                ],
                options={
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("server", "person"),
                            name="registry_one_credential",
                            nulls_distinct=False,
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="Icon",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="icons",
                            to="registry.server",
                        ),
                    ),
                    ("source", models.TextField()),
                    ("digest", models.CharField(max_length=64)),
                    ("content", models.BinaryField(null=True)),
                    ("problem", models.TextField(blank=True)),
                    ("fetched_at", models.DateTimeField(default=django.utils.timezone.now)),
                ],
                options={
                    "ordering": ["pk"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("server", "digest"), name="registry_icon_once"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ServerOrigin",
                fields=[
                    (
                        "server",
                        models.OneToOneField(
                            editable=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            primary_key=True,
                            related_name="origin",
                            serialize=False,
                            to="registry.server",
                        ),
                    ),
                    ("name", models.CharField(max_length=200)),
                    ("version", models.CharField(max_length=255)),
                    ("body", models.JSONField()),
                    ("digest", models.CharField(max_length=71)),
                    ("registry", models.URLField(blank=True, max_length=500)),
                    ("status", models.CharField(blank=True, max_length=255)),
                    ("published_at", models.CharField(blank=True, max_length=255)),
                    ("fetched_at", models.DateTimeField(default=django.utils.timezone.now)),
                    ("package", models.JSONField(default=dict)),
                    ("address", models.TextField()),
                ],
                options={
                    "default_permissions": (),
                },
            ),
            migrations.CreateModel(
                name="Item",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="items",
                            to="registry.server",
                        ),
                    ),
                    (
                        "kind",
                        models.CharField(
                            choices=[
                                ("resource", "Resource"),
                                ("template", "Resource template"),
                                ("prompt", "Prompt"),
                                ("instructions", "Instructions"),
                            ],
                            max_length=12,
                        ),
                    ),
                    ("key", models.TextField()),
                    (
                        "state",
                        models.CharField(
                            choices=[
                                ("new", "Unpublished"),
                                ("published", "Published"),
                                ("changed", "Changed, needs review"),
                                ("retired", "Removed upstream"),
                            ],
                            default="new",
                            max_length=9,
                        ),
                    ),
                    (
                        "published",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="registry.itemversion",
                        ),
                    ),
                    (
                        "latest",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="registry.itemversion",
                        ),
                    ),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                ],
                options={
                    "ordering": ["kind", "key"],
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("server", "kind", "key"), name="registry_item_once_a_server"
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("state", "published"), _negated=True),
                                models.Q(
                                    ("published", models.F("latest")), ("published__isnull", False)
                                ),
                                _connector="OR",
                            ),
                            name="registry_item_published_is_latest",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="34a0c353ca7bcbbb6421918c9177a3b29a988520",
                                level="STATEMENT",
                                operation='INSERT OR DELETE OR UPDATE OF "state", "published_id"',
                                pgid="pgtrigger_configuration_0e95a",
                                table="registry_item",
                                when="AFTER",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'registry_item rows are never changed or removed';",
                                hash="a393e41723eb5cbb485d51f9d446958acaf1d0d4",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_934ed",
                                table="registry_item",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="ItemVersion",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("version", models.PositiveIntegerField()),
                    ("digest", models.CharField(max_length=64)),
                    ("body", models.TextField()),
                    (
                        "first_seen_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("scan", models.JSONField(editable=False, null=True)),
                    (
                        "item",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="versions",
                            to="registry.item",
                        ),
                    ),
                ],
                options={
                    "ordering": ["-version"],
                    "default_permissions": (),
                    "indexes": [
                        models.Index(fields=["item", "digest"], name="registry_item_digest")
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("item", "version"), name="registry_item_version_once"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="only_columns",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF to_jsonb(NEW) - ARRAY['scan'] IS DISTINCT FROM to_jsonb(OLD) - ARRAY['scan'] THEN\n                RAISE EXCEPTION 'registry_itemversion rows are never changed or removed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="9088fd9211748b3137f5274fff9c5823e1a9f776",
                                operation="UPDATE",
                                pgid="pgtrigger_only_columns_8aa9a",
                                table="registry_itemversion",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'registry_itemversion rows are never changed or removed';",
                                hash="206bb2c7fbdccc6c8646bed507e7cec6cf23dec3",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_078e9",
                                table="registry_itemversion",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'registry_itemversion rows are never changed or removed';",
                                hash="4ae98135f5c25b9ff09c85dfffe14e2a80422790",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_3cfc5",
                                table="registry_itemversion",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Tool",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="tools",
                            to="registry.server",
                        ),
                    ),
                    ("name", models.CharField(max_length=200)),
                    (
                        "exposed_name",
                        models.CharField(
                            max_length=200,
                            unique=True,
                            validators=[
                                django.core.validators.RegexValidator(
                                    "^[A-Za-z0-9_./-]{1,200}\\Z", "Use letters, digits, _ . - and /"
                                )
                            ],
                        ),
                    ),
                    (
                        "state",
                        models.CharField(
                            choices=[
                                ("new", "Unpublished"),
                                ("published", "Published"),
                                ("changed", "Changed, needs review"),
                                ("retired", "Removed upstream"),
                            ],
                            default="new",
                            max_length=9,
                        ),
                    ),
                    (
                        "published",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="registry.definition",
                        ),
                    ),
                    (
                        "latest",
                        models.ForeignKey(
                            blank=True,
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to="registry.definition",
                        ),
                    ),
                    (
                        "mode",
                        models.CharField(
                            choices=[
                                ("auto", "Automatic"),
                                ("inline", "Short: answered at once"),
                                ("background", "Long: run by a worker"),
                            ],
                            default="auto",
                            max_length=10,
                        ),
                    ),
                    ("p95_ms", models.PositiveIntegerField(editable=False, null=True)),
                    ("measured", models.PositiveIntegerField(default=0, editable=False)),
                    ("is_long", models.BooleanField(default=False, editable=False)),
                    (
                        "safe_to_repeat",
                        models.BooleanField(default=False, verbose_name="retry-safe"),
                    ),
                    (
                        "confirmed_read_only",
                        models.BooleanField(
                            db_default=False, default=False, verbose_name="read-only, confirmed"
                        ),
                    ),
                    (
                        "cancel_is_final",
                        models.BooleanField(
                            db_default=False,
                            default=False,
                            verbose_name="cancelled calls need nobody",
                        ),
                    ),
                    (
                        "repeats",
                        models.CharField(
                            choices=[
                                ("auto", "Block until resolved"),
                                ("guard", "Block"),
                                ("allow", "Allow"),
                            ],
                            db_default="auto",
                            default="auto",
                            max_length=5,
                            verbose_name="duplicates",
                        ),
                    ),
                    (
                        "timeout_s",
                        models.PositiveIntegerField(
                            default=120, verbose_name="time limit in seconds"
                        ),
                    ),
                    (
                        "result_schema",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("", "Off"),
                                ("note", "Note in the record"),
                                ("block", "Block"),
                            ],
                            db_default="",
                            default="",
                            max_length=5,
                            verbose_name="results that do not fit the output schema",
                        ),
                    ),
                    (
                        "result_hidden",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("", "Pass on"),
                                ("remove", "Remove"),
                                ("show", "Write out as ⟦U+XXXX⟧"),
                            ],
                            db_default="",
                            default="",
                            max_length=6,
                            verbose_name="hidden characters in results",
                        ),
                    ),
                    (
                        "result_secrets",
                        models.BooleanField(
                            db_default=False, default=False, verbose_name="mask secrets"
                        ),
                    ),
                    (
                        "result_personal",
                        models.BooleanField(
                            db_default=False, default=False, verbose_name="mask personal data"
                        ),
                    ),
                    (
                        "result_tracebacks",
                        models.BooleanField(
                            db_default=False, default=False, verbose_name="leave out tracebacks"
                        ),
                    ),
                    (
                        "result_max_bytes",
                        models.PositiveIntegerField(
                            blank=True, null=True, verbose_name="most bytes of a result"
                        ),
                    ),
                    (
                        "result_links",
                        models.BooleanField(
                            db_default=False,
                            default=False,
                            verbose_name="deactivate links and images",
                        ),
                    ),
                    (
                        "result_hosts",
                        models.CharField(
                            blank=True,
                            db_default="",
                            default="",
                            max_length=1000,
                            verbose_name="except those of these hosts",
                        ),
                    ),
                    (
                        "result_marking",
                        models.CharField(
                            blank=True,
                            choices=[
                                ("", "Off"),
                                ("found", "What reads like instructions"),
                                ("all", "All texts"),
                            ],
                            db_default="",
                            default="",
                            max_length=5,
                            verbose_name="mark as data for the model",
                        ),
                    ),
                    (
                        "result_patterns",
                        models.TextField(
                            blank=True,
                            db_default="",
                            default="",
                            verbose_name="mask by patterns of your own",
                        ),
                    ),
                    (
                        "labels",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=9),
                            db_default=["untrusted", "sensitive", "sink"],
                            default=registry.models.tools.all_labels,
                            editable=False,
                            size=None,
                        ),
                    ),
                    (
                        "label_untrusted",
                        models.CharField(
                            blank=True,
                            choices=[("", "As its hints say"), ("yes", "Yes"), ("no", "No")],
                            db_default="",
                            default="",
                            max_length=3,
                            verbose_name="untrusted source",
                        ),
                    ),
                    (
                        "label_sensitive",
                        models.CharField(
                            blank=True,
                            choices=[("", "As its hints say"), ("yes", "Yes"), ("no", "No")],
                            db_default="",
                            default="",
                            max_length=3,
                            verbose_name="sensitive source",
                        ),
                    ),
                    (
                        "label_sink",
                        models.CharField(
                            blank=True,
                            choices=[("", "As its hints say"), ("yes", "Yes"), ("no", "No")],
                            db_default="",
                            default="",
                            max_length=3,
                            verbose_name="sends outside",
                        ),
                    ),
                    (
                        "icon",
                        models.ForeignKey(
                            editable=False,
                            null=True,
                            on_delete=django.db.models.deletion.SET_NULL,
                            related_name="+",
                            to="registry.icon",
                        ),
                    ),
                    (
                        "hints",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=40),
                            default=list,
                            editable=False,
                            size=None,
                        ),
                    ),
                    (
                        "risk",
                        models.CharField(
                            choices=[
                                ("destroys", "Destructive"),
                                ("unsaid", "Not declared"),
                                ("changes", "Adds or changes"),
                                ("reads", "Read-only"),
                            ],
                            default="unsaid",
                            editable=False,
                            max_length=8,
                        ),
                    ),
                    ("used_on", models.DateField(editable=False, null=True)),
                    (
                        "created_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    (
                        "tags",
                        models.ManyToManyField(blank=True, related_name="tools", to="registry.tag"),
                    ),
                ],
                options={
                    "ordering": ["exposed_name"],
                    "indexes": [
                        models.Index(fields=["state", "exposed_name"], name="registry_tool_state"),
                        models.Index(fields=["used_on"], name="registry_tool_used"),
                        django.contrib.postgres.indexes.GinIndex(
                            fields=["hints"], name="registry_tool_hints"
                        ),
                        models.Index(fields=["risk", "exposed_name"], name="registry_tool_risk"),
                        models.Index(
                            fields=["server", "exposed_name"], name="registry_tool_of_server"
                        ),
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("server", "name"), name="registry_tool_once_a_server"
                        ),
                        models.UniqueConstraint(
                            django.db.models.functions.text.Lower("exposed_name"),
                            name="registry_exposed_in_any_case",
                        ),
                        models.CheckConstraint(
                            condition=models.Q(
                                models.Q(("state", "published"), _negated=True),
                                models.Q(
                                    ("published", models.F("latest")), ("published__isnull", False)
                                ),
                                _connector="OR",
                            ),
                            name="registry_published_is_latest",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="c4773faab123e124cc692bdd5952462fe6eb56b9",
                                level="STATEMENT",
                                operation='INSERT OR DELETE OR UPDATE OF "server_id", "name", "exposed_name", "state", "published_id", "mode", "is_long", "safe_to_repeat", "confirmed_read_only", "cancel_is_final", "repeats", "timeout_s", "result_schema", "result_hidden", "result_secrets", "result_personal", "result_tracebacks", "result_max_bytes", "result_links", "result_hosts", "result_marking", "result_patterns", "labels"',
                                pgid="pgtrigger_configuration_9b1dc",
                                table="registry_tool",
                                when="AFTER",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'registry_tool rows are never changed or removed';",
                                hash="6e9e8f9efd8f751652427f429c04ae5b057098c0",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_960d9",
                                table="registry_tool",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Listing",
                fields=[
                    (
                        "tool",
                        models.OneToOneField(
                            on_delete=django.db.models.deletion.CASCADE,
                            primary_key=True,
                            related_name="listing",
                            serialize=False,
                            to="registry.tool",
                        ),
                    ),
                    ("words", models.TextField()),
                    ("lexemes", django.contrib.postgres.search.SearchVectorField()),
                    (
                        "bigrams",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(max_length=2), default=list, size=None
                        ),
                    ),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [
                        django.contrib.postgres.indexes.GinIndex(
                            fastupdate=False, fields=["lexemes"], name="registry_listing_lexemes"
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            fastupdate=False,
                            fields=["words"],
                            name="registry_listing_words",
                            opclasses=["gin_trgm_ops"],
                        ),
                        django.contrib.postgres.indexes.GinIndex(
                            fastupdate=False, fields=["bigrams"], name="registry_listing_bigrams"
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Definition",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("version", models.PositiveIntegerField()),
                    ("digest", models.CharField(max_length=64)),
                    ("body", models.TextField()),
                    (
                        "first_seen_at",
                        models.DateTimeField(default=django.utils.timezone.now, editable=False),
                    ),
                    ("scan", models.JSONField(editable=False, null=True)),
                    (
                        "tool",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="definitions",
                            to="registry.tool",
                        ),
                    ),
                ],
                options={
                    "ordering": ["-version"],
                    "get_latest_by": "version",
                    "indexes": [
                        models.Index(fields=["tool", "digest"], name="registry_definition_digest")
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("tool", "version"), name="registry_version_once"
                        )
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="only_columns",
                            sql=core.triggers.StrictTriggerSql(
                                func="\n            IF to_jsonb(NEW) - ARRAY['scan'] IS DISTINCT FROM to_jsonb(OLD) - ARRAY['scan'] THEN\n                RAISE EXCEPTION 'registry_definition rows are never changed or removed';\n            END IF;\n            RETURN NEW;\n        ",
                                hash="845a42a71c7c093471773d63a709f8a23824578d",
                                operation="UPDATE",
                                pgid="pgtrigger_only_columns_4c0ba",
                                table="registry_definition",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_delete",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'registry_definition rows are never changed or removed';",
                                hash="5611d83ed2f0c8e4110d8775be9f1a430bbc7e2e",
                                level="STATEMENT",
                                operation="DELETE",
                                pgid="pgtrigger_no_delete_9cc58",
                                table="registry_definition",
                                when="BEFORE",
                            ),
                        ),
                        pgtrigger.compiler.Trigger(
                            name="no_truncate",
                            sql=core.triggers.StrictTriggerSql(
                                func="RAISE EXCEPTION 'registry_definition rows are never changed or removed';",
                                hash="40235f29efcd679a93663b62db1d6492b88a01af",
                                level="STATEMENT",
                                operation="TRUNCATE",
                                pgid="pgtrigger_no_truncate_38aa6",
                                table="registry_definition",
                                when="BEFORE",
                            ),
                        ),
                    ],
                },
            ),
            migrations.CreateModel(
                name="Publication",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "definition",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="publications",
                            to="registry.definition",
                        ),
                    ),
                    (
                        "person",
                        models.ForeignKey(
                            null=True,
                            on_delete=django.db.models.deletion.PROTECT,
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                    ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ],
                options={
                    "ordering": ["-at"],
                },
            ),
            migrations.CreateModel(
                name="Toolset",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    ("slug", models.SlugField(max_length=64, unique=True, verbose_name="name")),
                    ("title", models.CharField(blank=True, max_length=200, verbose_name="title")),
                    (
                        "own_tools",
                        django.contrib.postgres.fields.ArrayField(
                            base_field=models.CharField(
                                choices=[
                                    ("await_call", "Wait for a call"),
                                    ("get_call", "Look at a call"),
                                    ("cancel_call", "Cancel a call"),
                                    ("my_waiting_calls", "List calls that have not ended"),
                                    (
                                        "justify",
                                        "Explain a call to those who decide, and answer them",
                                    ),
                                    ("explain", "Ask what rules would say of a call"),
                                ],
                                max_length=20,
                            ),
                            default=registry.models.toolsets.own_tools,
                            size=None,
                        ),
                    ),
                    (
                        "separator",
                        models.CharField(
                            choices=[
                                ("_", "Underscore: mailer_send_mail"),
                                ("-", "Hyphen: mailer-send_mail"),
                                (
                                    ".",
                                    "Dot: mailer.send_mail, which many models' APIs do not accept",
                                ),
                            ],
                            db_default="_",
                            default="_",
                            max_length=1,
                            verbose_name="separator in names",
                        ),
                    ),
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
                    (
                        "search_mode",
                        models.BooleanField(
                            db_default=False, default=False, verbose_name="search mode"
                        ),
                    ),
                    (
                        "agent_sign_in",
                        models.BooleanField(
                            db_default=False, default=False, verbose_name="agent sign-in"
                        ),
                    ),
                    (
                        "registry_readers",
                        models.CharField(
                            choices=[
                                ("none", "Off"),
                                (
                                    "tokens",
                                    "Agents of this toolset and service accounts, with their tokens",
                                ),
                                ("anyone", "Anyone who reaches this address, without signing in"),
                            ],
                            db_default="none",
                            default="none",
                            max_length=6,
                            verbose_name="readers of the registry",
                        ),
                    ),
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
                        "servers",
                        models.ManyToManyField(
                            blank=True, related_name="toolsets", to="registry.server"
                        ),
                    ),
                    (
                        "tools",
                        models.ManyToManyField(
                            blank=True, related_name="toolsets", to="registry.tool"
                        ),
                    ),
                    (
                        "agents",
                        models.ManyToManyField(
                            blank=True, related_name="toolsets", to="accounts.agent"
                        ),
                    ),
                ],
                options={
                    "ordering": ["slug"],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="18b9b900bf4040b3d2a4332093212dd698c611c8",
                                level="STATEMENT",
                                operation="INSERT OR DELETE OR UPDATE",
                                pgid="pgtrigger_configuration_1c0e4",
                                table="registry_toolset",
                                when="AFTER",
                            ),
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="RegistryVersion",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "toolset",
                        models.ForeignKey(
                            editable=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="registry_versions",
                            to="registry.toolset",
                        ),
                    ),
                    (
                        "server",
                        models.ForeignKey(
                            editable=False,
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="+",
                            to="registry.server",
                        ),
                    ),
                    ("number", models.PositiveIntegerField()),
                    ("name", models.CharField(max_length=200)),
                    ("body", models.JSONField()),
                    ("digest", models.CharField(max_length=64)),
                    ("published_at", models.DateTimeField(default=django.utils.timezone.now)),
                    ("deleted_at", models.DateTimeField(null=True)),
                ],
                options={
                    "default_permissions": (),
                    "indexes": [
                        models.Index(fields=["toolset", "name"], name="registry_served_name")
                    ],
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("toolset", "server", "number"), name="registry_served_once"
                        )
                    ],
                },
            ),
            migrations.CreateModel(
                name="ShownTool",
                fields=[
                    (
                        "id",
                        models.BigAutoField(
                            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                        ),
                    ),
                    (
                        "toolset",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="shown_tools",
                            to="registry.toolset",
                        ),
                    ),
                    (
                        "tool",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="shown_as",
                            to="registry.tool",
                        ),
                    ),
                    (
                        "name",
                        models.CharField(
                            blank=True,
                            max_length=64,
                            validators=[
                                django.core.validators.RegexValidator(
                                    "^[A-Za-z0-9_.-]{1,64}\\Z",
                                    "Use 1 to 64 of: letters, digits, _ . -",
                                )
                            ],
                            verbose_name="name",
                        ),
                    ),
                    ("title", models.CharField(blank=True, max_length=200, verbose_name="title")),
                    ("description", models.TextField(blank=True, verbose_name="description")),
                    ("pinned", models.TextField(blank=True, verbose_name="fixed arguments")),
                ],
                options={
                    "default_permissions": (),
                    "constraints": [
                        models.UniqueConstraint(
                            fields=("toolset", "tool"), name="registry_shown_once"
                        ),
                        models.UniqueConstraint(
                            models.F("toolset"),
                            django.db.models.functions.text.Lower("name"),
                            condition=models.Q(("name", ""), _negated=True),
                            name="registry_shown_name_in_any_case",
                        ),
                    ],
                    "triggers": [
                        pgtrigger.compiler.Trigger(
                            name="configuration",
                            sql=core.triggers.StrictTriggerSql(
                                func="PERFORM core_configuration_changed(); RETURN NULL;",
                                hash="40b6d1e1df9b41785c15a860f06a9f4dd90fdef5",
                                level="STATEMENT",
                                operation="INSERT OR DELETE OR UPDATE",
                                pgid="pgtrigger_configuration_c3933",
                                table="registry_showntool",
                                when="AFTER",
                            ),
                        )
                    ],
                },
            ),
        ),
        *watched(
            "registry_toolset_servers",
            "registry_toolset_tools",
            "registry_toolset_agents",
            "registry_tool_tags",
        ),
    ]

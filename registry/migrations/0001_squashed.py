import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models

import core.triggers
import registry.models.servers
import registry.models.toolsets
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
    ]

    dependencies = [
        ("core", "0001_squashed"),
        ("accounts", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        TrigramExtension(),
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
            ],
            options={
                "ordering": ["-version"],
                "get_latest_by": "version",
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
                    "kind",
                    models.CharField(
                        choices=[
                            ("resource", "Resource"),
                            ("template", "Resource template"),
                            ("prompt", "Prompt"),
                        ],
                        max_length=8,
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
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "ordering": ["kind", "key"],
                "default_permissions": (),
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
                ("name", models.CharField(max_length=200)),
                (
                    "exposed_name",
                    models.CharField(
                        max_length=140,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9_.-]{1,64}\\Z", "Use 1 to 64 of: letters, digits, _ . -"
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
                    models.PositiveIntegerField(default=120, verbose_name="time limit in seconds"),
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
                    "published",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="registry.definition",
                    ),
                ),
            ],
            options={
                "ordering": ["exposed_name"],
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
                        choices=[("http", "HTTP"), ("stdio", "Command (stdio)")], max_length=5
                    ),
                ),
                ("url", models.URLField(blank=True, max_length=2000, verbose_name="URL")),
                ("command", models.CharField(blank=True, max_length=100, verbose_name="command")),
                ("argv", models.JSONField(blank=True, default=list)),
                ("sealed_headers", models.BinaryField(null=True)),
                ("sealed_credential", models.BinaryField(null=True)),
                ("connection_version", models.PositiveIntegerField(default=1, editable=False)),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "publish_on_discovery",
                    models.BooleanField(default=False, verbose_name="publish on first discovery"),
                ),
                (
                    "relays",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("elicitation", "Questions to the agent's user"),
                                ("roots", "The folders that the agent works in"),
                                ("sampling", "Answers of the agent's model"),
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
                ("by_events", models.BooleanField(db_default=False, default=False, editable=False)),
                ("server_info", models.JSONField(default=dict, editable=False)),
                (
                    "tells_of_updates",
                    models.BooleanField(db_default=False, default=False, editable=False),
                ),
                (
                    "tells_of_lists",
                    models.BooleanField(db_default=False, default=False, editable=False),
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
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="servers",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["slug"],
                "permissions": [("operate_server", "Can register servers and publish definitions")],
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
            },
        ),
        migrations.AddField(
            model_name="item",
            name="latest",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="registry.itemversion",
            ),
        ),
        migrations.AddField(
            model_name="item",
            name="published",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="registry.itemversion",
            ),
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
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="definition",
            name="tool",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="definitions",
                to="registry.tool",
            ),
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
                ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
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
            ],
            options={
                "ordering": ["-at"],
            },
        ),
        migrations.AddField(
            model_name="tool",
            name="server",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tools",
                to="registry.server",
            ),
        ),
        migrations.AddField(
            model_name="item",
            name="server",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="items",
                to="registry.server",
            ),
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
                ("at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("succeeded", models.BooleanField()),
                ("summary", models.TextField(blank=True)),
                ("on_its_word", models.BooleanField(db_default=False, default=False)),
                ("moved", models.BooleanField(db_default=False, default=False)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="discoveries",
                        to="registry.server",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "discoveries",
                "ordering": ["-at"],
            },
        ),
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
                ("uri", models.TextField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.agent",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="tool",
            name="tags",
            field=models.ManyToManyField(blank=True, related_name="tools", to="registry.tag"),
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
                                ("justify", "Explain a call to those who decide, and answer them"),
                                ("explain", "Ask what rules would say of a call"),
                            ],
                            max_length=20,
                        ),
                        default=registry.models.toolsets.own_tools,
                        size=None,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "agents",
                    models.ManyToManyField(
                        blank=True, related_name="toolsets", to="accounts.agent"
                    ),
                ),
                (
                    "servers",
                    models.ManyToManyField(
                        blank=True, related_name="toolsets", to="registry.server"
                    ),
                ),
                (
                    "tools",
                    models.ManyToManyField(blank=True, related_name="toolsets", to="registry.tool"),
                ),
            ],
            options={
                "ordering": ["slug"],
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
                    "name",
                    models.CharField(
                        blank=True,
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9_.-]{1,64}\\Z", "Use 1 to 64 of: letters, digits, _ . -"
                            )
                        ],
                        verbose_name="name",
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=200, verbose_name="title")),
                ("description", models.TextField(blank=True, verbose_name="description")),
                ("pinned", models.TextField(blank=True, verbose_name="fixed arguments")),
                (
                    "tool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="shown_as",
                        to="registry.tool",
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
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="itemversion",
            index=models.Index(fields=["item", "digest"], name="registry_item_digest"),
        ),
        migrations.AddConstraint(
            model_name="itemversion",
            constraint=models.UniqueConstraint(
                fields=("item", "version"), name="registry_item_version_once"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="itemversion",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'registry_itemversion rows are never changed or removed';",
                    hash="b70c04e28439bb8a8407b7e378d2c543d299569c",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_35bb7",
                    table="registry_itemversion",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="itemversion",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="itemversion",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        migrations.AddIndex(
            model_name="listing",
            index=django.contrib.postgres.indexes.GinIndex(
                fastupdate=False, fields=["lexemes"], name="registry_listing_lexemes"
            ),
        ),
        migrations.AddIndex(
            model_name="listing",
            index=django.contrib.postgres.indexes.GinIndex(
                fastupdate=False,
                fields=["words"],
                name="registry_listing_words",
                opclasses=["gin_trgm_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="definition",
            index=models.Index(fields=["tool", "digest"], name="registry_definition_digest"),
        ),
        migrations.AddConstraint(
            model_name="definition",
            constraint=models.UniqueConstraint(
                fields=("tool", "version"), name="registry_version_once"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="definition",
            trigger=pgtrigger.compiler.Trigger(
                name="no_update",
                sql=core.triggers.StrictTriggerSql(
                    func="RAISE EXCEPTION 'registry_definition rows are never changed or removed';",
                    hash="c72673141635cda17de616a99f26161182e40db0",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_no_update_8d1d9",
                    table="registry_definition",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="definition",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="definition",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="server",
            trigger=pgtrigger.compiler.Trigger(
                name="configuration",
                sql=core.triggers.StrictTriggerSql(
                    func="PERFORM core_configuration_changed(); RETURN NULL;",
                    hash="b5837f7c1faa13cc681c572105e7a798b217ac8a",
                    level="STATEMENT",
                    operation='INSERT OR DELETE OR UPDATE OF "slug", "transport", "url", "argv", "sealed_headers", "sealed_credential", "connection_version", "enabled", "relays", "methods", "revision", "by_events", "tells_of_updates"',
                    pgid="pgtrigger_configuration_b8fcc",
                    table="registry_server",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(
                fields=("server", "kind", "key"), name="registry_item_once_a_server"
            ),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "published"), _negated=True),
                    models.Q(("published", models.F("latest")), ("published__isnull", False)),
                    _connector="OR",
                ),
                name="registry_item_published_is_latest",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="item",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="item",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(
                fields=("session", "uri"), name="registry_subscribed_once"
            ),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(fields=["state", "exposed_name"], name="registry_tool_state"),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(fields=["used_on"], name="registry_tool_used"),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["hints"], name="registry_tool_hints"
            ),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(fields=["risk", "exposed_name"], name="registry_tool_risk"),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(fields=["server", "exposed_name"], name="registry_tool_of_server"),
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.UniqueConstraint(
                fields=("server", "name"), name="registry_tool_once_a_server"
            ),
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("exposed_name"),
                name="registry_exposed_in_any_case",
            ),
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "published"), _negated=True),
                    models.Q(("published", models.F("latest")), ("published__isnull", False)),
                    _connector="OR",
                ),
                name="registry_published_is_latest",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="tool",
            trigger=pgtrigger.compiler.Trigger(
                name="configuration",
                sql=core.triggers.StrictTriggerSql(
                    func="PERFORM core_configuration_changed(); RETURN NULL;",
                    hash="f0b182d5106bb043205370f853189da2f768aa4c",
                    level="STATEMENT",
                    operation='INSERT OR DELETE OR UPDATE OF "exposed_name", "state", "published_id", "mode", "is_long", "safe_to_repeat", "confirmed_read_only", "repeats", "timeout_s"',
                    pgid="pgtrigger_configuration_9b1dc",
                    table="registry_tool",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="tool",
            trigger=pgtrigger.compiler.Trigger(
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
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="toolset",
            trigger=pgtrigger.compiler.Trigger(
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
            ),
        ),
        migrations.AddConstraint(
            model_name="showntool",
            constraint=models.UniqueConstraint(
                fields=("toolset", "tool"), name="registry_shown_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="showntool",
            constraint=models.UniqueConstraint(
                models.F("toolset"),
                django.db.models.functions.text.Lower("name"),
                condition=models.Q(("name", ""), _negated=True),
                name="registry_shown_name_in_any_case",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="showntool",
            trigger=pgtrigger.compiler.Trigger(
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
            ),
        ),
        *watched(
            "registry_toolset_servers",
            "registry_toolset_tools",
            "registry_toolset_agents",
            "registry_tool_tags",
        ),
    ]

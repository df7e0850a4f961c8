import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0004_automatic_mode"),
    ]

    operations = [
        # Trusted: whoever owns the database may create it. It comes with PostgreSQL's own modules.
        TrigramExtension(),
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
        migrations.AddField(
            model_name="tool",
            name="hints",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=40), default=list, editable=False, size=None
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="risk",
            field=models.CharField(
                choices=[
                    ("destroys", "May destroy"),
                    ("unsaid", "Does not say"),
                    ("changes", "Adds or changes"),
                    ("reads", "Only reads"),
                ],
                default="unsaid",
                editable=False,
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="used_on",
            field=models.DateField(editable=False, null=True),
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
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["lexemes"], name="registry_listing_lexemes"
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["words"], name="registry_listing_words", opclasses=["gin_trgm_ops"]
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="tool",
            name="tags",
            field=models.ManyToManyField(blank=True, related_name="tools", to="registry.tag"),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(
                condition=models.Q(("state__in", ["new", "changed"])),
                fields=["exposed_name"],
                name="registry_tool_unpublished",
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
    ]

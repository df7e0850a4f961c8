import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0008_facets"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="listing",
            name="registry_listing_lexemes",
        ),
        migrations.RemoveIndex(
            model_name="listing",
            name="registry_listing_words",
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
    ]

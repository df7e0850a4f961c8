import orjson
from django.db import migrations

from registry.versions import search_index


def forwards(apps, schema_editor):
    """Tools that are known already are found like those that come."""
    tools = apps.get_model("registry", "Tool")._default_manager.using(
        schema_editor.connection.alias
    )
    listings = apps.get_model("registry", "Listing")._default_manager.using(
        schema_editor.connection.alias
    )
    for tool in tools.exclude(latest=None).select_related("latest").iterator(chunk_size=200):
        content = orjson.loads(tool.latest.body)
        found_by = search_index.words(tool.exposed_name, content)
        listings.update_or_create(tool_id=tool.pk, defaults=found_by)
        tools.filter(pk=tool.pk).update(**search_index.claims(content))


class Migration(migrations.Migration):
    dependencies = [("registry", "0005_search")]

    operations = [migrations.RunPython(forwards, migrations.RunPython.noop, elidable=True)]

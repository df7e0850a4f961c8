from django.db import migrations

from core.triggers import FIX_SEARCH_PATHS


class Migration(migrations.Migration):
    """The functions that migrations here made as SQL."""

    dependencies = [("approvals", "0008_frozen_clocks_and_talk"), ("core", "0002_search_paths")]
    operations = [migrations.RunSQL(FIX_SEARCH_PATHS, migrations.RunSQL.noop)]

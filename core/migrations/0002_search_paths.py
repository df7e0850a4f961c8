from django.db import migrations

from core.triggers import FIX_SEARCH_PATHS


class Migration(migrations.Migration):
    """Functions that were there before they named where they look."""

    dependencies = [("core", "0001_initial")]
    operations = [migrations.RunSQL(FIX_SEARCH_PATHS, migrations.RunSQL.noop)]

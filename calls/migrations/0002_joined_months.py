from django.db import migrations

from core.sql_files import in_months


class Migration(migrations.Migration):
    """Of its own: the indexes of a table are made when its migration ends."""

    replaces = [("calls", "0019_holds_by_index")]

    dependencies = [("calls", "0001_joined"), ("core", "0001_joined")]

    operations = [in_months("calls_call", "id"), in_months("calls_result", "call_id")]

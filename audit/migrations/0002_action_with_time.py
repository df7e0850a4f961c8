from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """The audit page's histogram reads times from the index alone. Beside calls that go on: a large
    record takes minutes."""

    atomic = False

    dependencies = [("audit", "0001_joined")]

    operations = [
        AddIndexConcurrently(
            "entryrow",
            models.Index(
                name="audit_entry_action_at",
                fields=["action", "id"],
                include=["at"],
                condition=models.Q(action__gt=2),
            ),
        ),
        RemoveIndexConcurrently("entryrow", "audit_entry_action"),
    ]

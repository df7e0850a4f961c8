from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Sentences of invalid requests are found, too, where they are to be forgotten. Beside calls
    that go on: a large record takes minutes."""

    atomic = False

    dependencies = [("audit", "0002_action_with_time")]

    operations = [
        AddIndexConcurrently(
            "entryrow",
            models.Index(
                name="audit_entry_own_reason",
                fields=["reason"],
                condition=models.Q(reason__isnull=False)
                & (
                    models.Q(seq__isnull=True)
                    | models.Q(seq__gt=1)
                    | models.Q(to_state__in=("refused", "invalid"))
                ),
            ),
        ),
        RemoveIndexConcurrently("entryrow", "audit_entry_reason"),
    ]

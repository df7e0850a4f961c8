from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Entries are written meanwhile.
    atomic = False

    dependencies = [
        ("audit", "0012_legal_entry_names"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="entryrow",
            index=models.Index(
                condition=models.Q(
                    ("reason__isnull", False),
                    models.Q(
                        ("seq__isnull", True),
                        ("seq__gt", 1),
                        ("to_state", "refused"),
                        _connector="OR",
                    ),
                ),
                fields=["reason"],
                name="audit_entry_reason",
            ),
        ),
    ]

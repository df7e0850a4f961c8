from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Beside messages that go on: a month of them takes seconds."""

    atomic = False

    dependencies = [("notifications", "0003_begun_delegations")]

    operations = [
        AddIndexConcurrently(
            "delivery",
            models.Index(
                name="notifications_asked",
                fields=["person", "created_at"],
                condition=models.Q(event="approval.needed", person__isnull=False),
            ),
        ),
        AddIndexConcurrently(
            "delivery",
            models.Index(
                name="notifications_asked_on",
                fields=["device", "created_at"],
                condition=models.Q(event="approval.needed", device__isnull=False),
            ),
        ),
    ]

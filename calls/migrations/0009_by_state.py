from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_proofs"),
        ("calls", "0008_asked"),
        ("registry", "0008_facets"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="call",
            name="calls_live",
        ),
        migrations.RemoveIndex(
            model_name="call",
            name="calls_unknown",
        ),
        migrations.AddIndex(
            model_name="call",
            index=models.Index(
                condition=models.Q(("state", "succeeded"), _negated=True),
                fields=["state", "id"],
                name="calls_by_state",
            ),
        ),
    ]

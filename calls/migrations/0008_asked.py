from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("calls", "0007_late_replies_and_tasks")]

    operations = [
        migrations.AddIndex(
            model_name="call",
            index=models.Index(
                condition=models.Q(("effect", "ask")),
                fields=["tool", "-id"],
                name="calls_asked",
            ),
        ),
    ]

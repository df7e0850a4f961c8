from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("calls", "0007_limits"),
    ]

    operations = [
        operation
        for name in ("agent", "tool")
        for operation in (
            migrations.RemoveIndex(model_name="call", name=f"calls_{name}"),
            migrations.AddIndex(
                model_name="call",
                index=models.Index(fields=[name, "id"], name=f"calls_{name}"),
            ),
        )
    ]

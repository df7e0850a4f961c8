from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0001_joined"),
    ]

    operations = [
        migrations.AddField(
            model_name="serverorigin",
            name="signature",
            field=models.JSONField(null=True),
        ),
    ]

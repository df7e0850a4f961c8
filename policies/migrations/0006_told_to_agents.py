from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("policies", "0005_confirm_grants"),
    ]

    operations = [
        migrations.AddField(
            model_name="rule",
            name="instead",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                max_length=300,
                verbose_name="what would be allowed",
            ),
        ),
        migrations.AddField(
            model_name="rule",
            name="unnamed",
            field=models.BooleanField(
                db_default=False, default=False, verbose_name="agents are not told its name"
            ),
        ),
    ]

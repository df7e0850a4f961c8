from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("policies", "0008_policy_plans"),
    ]

    operations = [
        migrations.AddField(
            model_name="rule",
            name="results",
            field=models.JSONField(blank=True, db_default={}, default=dict, verbose_name="results"),
        ),
    ]

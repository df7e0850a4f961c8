from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("policies", "0009_results"),
    ]

    operations = [
        migrations.AddField(
            model_name="limit",
            name="cost_result",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                max_length=200,
                verbose_name="result field with the cost",
            ),
        ),
    ]

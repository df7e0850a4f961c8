from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_sealed_and_found")]

    operations = [
        migrations.RemoveIndex(model_name="line", name="audit_line_effect"),
        migrations.AddIndex(
            model_name="line",
            index=models.Index(
                condition=models.Q(("effect", ""), _negated=True),
                fields=["effect", "entry"],
                name="audit_line_effect",
            ),
        ),
    ]

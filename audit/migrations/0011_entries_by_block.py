from django.db import migrations, models
from django.db.models.expressions import CombinedExpression

NAMES = ("agent", "person", "tool", "context")


def _block() -> models.ExpressionWrapper:
    shifted = CombinedExpression(models.F("id"), ">>", models.Value(10))
    return models.ExpressionWrapper(shifted, models.BigIntegerField())


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0010_legal_entries"),
    ]

    operations = [
        operation
        for name in NAMES
        for operation in (
            migrations.RemoveIndex(model_name="entryrow", name=f"audit_entry_{name}"),
            migrations.AddIndex(
                model_name="entryrow",
                index=models.Index(
                    models.F(name),
                    _block(),
                    condition=models.Q((f"{name}__isnull", False)),
                    name=f"audit_entry_{name}",
                ),
            ),
        )
    ]

from django.db import migrations


class Migration(migrations.Migration):
    """How far sealing is stands in leaves alone: nobody can move it by a row of its own."""

    dependencies = [("audit", "0003_every_decision")]

    operations = [migrations.DeleteModel(name="Sealing")]

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

import core.triggers
from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0004_entries_in_numbers"),
    ]

    operations = [
        run_file("audit/sql/thinning.sql"),
        pgtrigger.migrations.RemoveTrigger(
            model_name="checkpoint",
            name="no_delete",
        ),
        migrations.RunSQL("DROP FUNCTION pgtrigger_no_delete_0f186()"),
        pgtrigger.migrations.AddTrigger(
            model_name="checkpoint",
            trigger=pgtrigger.compiler.Trigger(
                name="thinned",
                sql=core.triggers.StrictTriggerSql(
                    func="\n        IF NOT audit_may_thin(OLD.size, OLD.at,\n            (SELECT at FROM audit_checkpoint WHERE id < OLD.id ORDER BY id DESC LIMIT 1),\n            (SELECT at FROM audit_checkpoint WHERE id > OLD.id ORDER BY id LIMIT 1))\n        THEN\n            RAISE EXCEPTION 'checkpoint % is kept: younger ones do not stand for it', OLD.id;\n        END IF;\n        RETURN OLD;\n    ",
                    hash="63c26eb514bbcf3d5199c47d5f9fa24f8237ebc8",
                    operation="DELETE",
                    pgid="pgtrigger_thinned_d4a98",
                    table="audit_checkpoint",
                    when="BEFORE",
                ),
            ),
        ),
    ]

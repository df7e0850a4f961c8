import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import core.triggers


class Migration(migrations.Migration):
    dependencies = [
        ("calls", "0002_joined_months"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="call",
            name="legal_birth",
        ),
        migrations.AlterField(
            model_name="call",
            name="state",
            field=models.CharField(
                choices=[
                    ("refused", "Blocked by policy"),
                    ("invalid", "Invalid request"),
                    ("held", "Pending approval"),
                    ("approved", "Approved"),
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("succeeded", "Succeeded"),
                    ("tool_error", "Tool error"),
                    ("failed", "Failed"),
                    ("timed_out", "Timed out"),
                    ("cancelled", "Cancelled"),
                    ("unknown", "Outcome unknown"),
                    ("denied", "Denied"),
                    ("expired", "Expired"),
                    ("withdrawn", "Withdrawn"),
                    ("superseded", "Superseded"),
                    ("resolved", "Resolved"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="latereply",
            name="state",
            field=models.CharField(
                choices=[
                    ("refused", "Blocked by policy"),
                    ("invalid", "Invalid request"),
                    ("held", "Pending approval"),
                    ("approved", "Approved"),
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("succeeded", "Succeeded"),
                    ("tool_error", "Tool error"),
                    ("failed", "Failed"),
                    ("timed_out", "Timed out"),
                    ("cancelled", "Cancelled"),
                    ("unknown", "Outcome unknown"),
                    ("denied", "Denied"),
                    ("expired", "Expired"),
                    ("withdrawn", "Withdrawn"),
                    ("superseded", "Superseded"),
                    ("resolved", "Resolved"),
                ],
                max_length=10,
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="call",
            trigger=pgtrigger.compiler.Trigger(
                name="legal_birth",
                sql=core.triggers.StrictTriggerSql(
                    declare="DECLARE wrong text;",
                    func="\n        SELECT looked.why INTO wrong FROM (SELECT \n            CASE\n            WHEN n.seq <> 1 OR n.state NOT IN ('refused', 'invalid', 'held', 'queued', 'running') THEN 'a call cannot begin like this'\n            WHEN (\n                SELECT true FROM audit_entryrow e\n                WHERE e.call_id = n.id AND e.seq = 1 AND e.to_state = n.state) IS NOT TRUE\n            THEN 'a call without its entry'\n            END AS why FROM new_rows n) looked\n        WHERE looked.why IS NOT NULL LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n    ",
                    hash="590d7722bc0682299f924318cb97a7b69772df35",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_legal_birth_a1c0e",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="calls_call",
                    when="AFTER",
                ),
            ),
        ),
    ]

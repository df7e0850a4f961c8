import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

import core.triggers


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0004_entries_in_numbers"),
        ("calls", "0001_squashed"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="call",
            name="legal_birth",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="call",
            name="legal_move",
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="call",
            trigger=pgtrigger.compiler.Trigger(
                name="legal_birth",
                sql=core.triggers.StrictTriggerSql(
                    declare="DECLARE wrong text;",
                    func="\n        SELECT looked.why INTO wrong FROM (SELECT \n            CASE\n            WHEN n.seq <> 1 OR n.state NOT IN ('refused', 'held', 'queued', 'running') THEN 'a call cannot begin like this'\n            WHEN (\n                SELECT true FROM audit_entryrow e\n                WHERE e.call_id = n.id AND e.seq = 1 AND e.to_state = n.state) IS NOT TRUE\n            THEN 'a call without its entry'\n            END AS why FROM new_rows n) looked\n        WHERE looked.why IS NOT NULL LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n    ",
                    hash="96dcc3dda53c31ac1ca50a2dc4f4127be181cb8d",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_legal_birth_a1c0e",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="calls_call",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="call",
            trigger=pgtrigger.compiler.Trigger(
                name="legal_move",
                sql=core.triggers.StrictTriggerSql(
                    declare="DECLARE wrong text;",
                    func="\n        PERFORM FROM new_rows n LEFT JOIN old_rows o ON o.id = n.id WHERE (\n            n.seq = o.seq + 1 AND o.state || ' ' || n.state IN ('held approved', 'held denied', 'held expired', 'held withdrawn', 'held superseded', 'held unknown', 'approved queued', 'approved unknown', 'queued running', 'queued cancelled', 'queued expired', 'queued superseded', 'queued unknown', 'running succeeded', 'running tool_error', 'running failed', 'running timed_out', 'running cancelled', 'running unknown', 'unknown resolved')\n            AND NOT ((o.id, o.agent_id, o.token_id, o.person_id, o.toolset, o.server_id, o.tool_id, o.definition_id, o.tool_name, o.arguments, o.arguments_digest, o.origin, o.mode, o.effect, o.rule_id, o.asked_at, o.amendment_id, o.statement, o.call_digest) IS DISTINCT FROM (n.id, n.agent_id, n.token_id, n.person_id, n.toolset, n.server_id, n.tool_id, n.definition_id, n.tool_name, n.arguments, n.arguments_digest, n.origin, n.mode, n.effect, n.rule_id, n.asked_at, n.amendment_id, n.statement, n.call_digest)) AND (\n    SELECT true FROM audit_entryrow e\n    WHERE e.call_id = n.id AND e.seq = n.seq AND e.from_state = o.state AND e.to_state = n.state\n)\n        ) IS NOT TRUE LIMIT 1;\n        IF NOT FOUND THEN\n            RETURN NULL;\n        END IF;\n        \n        SELECT looked.why INTO wrong FROM (SELECT \n            CASE\n            WHEN o.id IS NULL OR ((o.id, o.agent_id, o.token_id, o.person_id, o.toolset, o.server_id, o.tool_id, o.definition_id, o.tool_name, o.arguments, o.arguments_digest, o.origin, o.mode, o.effect, o.rule_id, o.asked_at) IS DISTINCT FROM (n.id, n.agent_id, n.token_id, n.person_id, n.toolset, n.server_id, n.tool_id, n.definition_id, n.tool_name, n.arguments, n.arguments_digest, n.origin, n.mode, n.effect, n.rule_id, n.asked_at))\n            THEN 'what was asked is never changed'\n            WHEN ((o.amendment_id, o.statement, o.call_digest) IS DISTINCT FROM (n.amendment_id, n.statement, n.call_digest)) AND NOT (n.seq = o.seq + 1 AND (\n    SELECT o.state = 'held' AND n.state = 'held'\n        AND a.seq = n.seq AND a.call_digest = n.call_digest\n        AND n.call_digest = encode(sha256(\n            convert_to('countersign call 1' || chr(10) || n.statement, 'UTF8')), 'hex')\n        AND a.arguments_digest = encode(sha256(a.arguments), 'hex')\n        AND n.statement::jsonb\n            = jsonb_set(o.statement::jsonb, '{arguments}', to_jsonb(a.arguments_digest))\n    FROM calls_amendment a WHERE a.id = n.amendment_id AND a.call_id = n.id\n) IS TRUE)\n            THEN 'what is to be sent changes only by an amendment while the call is held'\n            WHEN n.state = o.state AND n.seq = o.seq\n            THEN NULL\n            WHEN NOT (n.seq = o.seq + 1 AND (((o.amendment_id, o.statement, o.call_digest) IS DISTINCT FROM (n.amendment_id, n.statement, n.call_digest)) OR o.state || ' ' || n.state IN ('held approved', 'held denied', 'held expired', 'held withdrawn', 'held superseded', 'held unknown', 'approved queued', 'approved unknown', 'queued running', 'queued cancelled', 'queued expired', 'queued superseded', 'queued unknown', 'running succeeded', 'running tool_error', 'running failed', 'running timed_out', 'running cancelled', 'running unknown', 'running queued', 'unknown resolved'))\n                      AND (o.state <> 'running' OR n.state <> 'queued' OR (\n    n.executed = 'no'\n    OR (SELECT t.safe_to_repeat FROM registry_tool t WHERE t.id = n.tool_id) IS TRUE\n)))\n            THEN 'a call cannot move like this'\n            WHEN (\n    SELECT true FROM audit_entryrow e\n    WHERE e.call_id = n.id AND e.seq = n.seq AND e.from_state = o.state AND e.to_state = n.state\n) IS NOT TRUE\n            THEN 'a move without its entry'\n            END AS why FROM new_rows n LEFT JOIN old_rows o ON o.id = n.id) looked\n        WHERE looked.why IS NOT NULL LIMIT 1;\n        IF wrong IS NOT NULL THEN\n            RAISE EXCEPTION USING MESSAGE = wrong;\n        END IF;\n        RETURN NULL;\n    ",
                    hash="774fcb390f182e4ecef82a4ca08d0f7c5c6e4ce5",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_legal_move_8f091",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="calls_call",
                    when="AFTER",
                ),
            ),
        ),
    ]

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

import core.triggers
from core.sql_files import run_file


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_break_glass_during_stops"),
    ]

    operations = [
        run_file("approvals/sql/delegations.sql"),
        pgtrigger.migrations.RemoveTrigger(
            model_name="vote",
            name="legal_vote",
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vote",
            trigger=pgtrigger.compiler.Trigger(
                name="legal_vote",
                sql=core.triggers.StrictTriggerSql(
                    declare="DECLARE asked approvals_approval;",
                    func="\n        -- Voters take turns here: each sees the votes before.\n        SELECT * INTO asked FROM approvals_approval WHERE call_id = NEW.approval_id FOR UPDATE;\n        IF asked.state IS DISTINCT FROM 'waiting' OR asked.decide_by <= clock_timestamp() AND\n            (SELECT c.clock_stopped_at FROM calls_call c WHERE c.id = NEW.approval_id) IS NULL\n        THEN\n            RAISE EXCEPTION 'nobody decides this call any more';\n        ELSIF NEW.fallen_at IS NOT NULL OR NEW.fallen_why <> '' THEN\n            RAISE EXCEPTION 'a vote begins by standing';\n        ELSIF NEW.person_id IN (SELECT x.person_id FROM approvals_excluded(NEW.approval_id) x) THEN\n            RAISE EXCEPTION 'nobody decides on calls that they have a part in, or that they edited';\n        ELSIF NEW.approve AND NEW.person_id IN\n            (SELECT b.person_id FROM approvals_bound(NEW.approval_id) b)\n        THEN\n            RAISE EXCEPTION 'a delegate and who named them are one approval';\n        ELSIF NOT approvals_may_decide(NEW.person_id) THEN\n            RAISE EXCEPTION 'this person may not decide';\n        ELSIF NOT (\n            SELECT bool_or(approvals_is_from(NEW.person_id, t.t ->> 'from'))\n            FROM jsonb_array_elements(asked.thresholds) t (t)\n            WHERE COALESCE((t.t ->> 'after_min')::int, 0) <= asked.widened_min)\n            AND NOT EXISTS (\n                SELECT FROM approvals_breakglass b\n                WHERE b.approval_id = NEW.approval_id AND b.person_id = NEW.person_id\n                  AND b.seen_digest = NEW.seen_digest AND NEW.approve)\n        THEN\n            RAISE EXCEPTION 'the rule asks other people';\n        ELSIF NEW.seen_digest = '' OR NEW.seen_digest IS DISTINCT FROM\n            (SELECT c.call_digest FROM calls_call c WHERE c.id = NEW.approval_id)\n        THEN\n            RAISE EXCEPTION 'a vote on something else than what is held';\n        END IF;\n        -- Not excluded although they have a part in it: there is nobody else.\n        NEW.single_person = NEW.person_id IN\n            (SELECT p.person_id FROM approvals_parties(NEW.approval_id) p);\n        -- In whose place it is given: of those whom no other vote was given for.\n        NEW.for_people = ARRAY(\n            SELECT d.delegator_id FROM approvals_delegations(NEW.approval_id) d\n            WHERE d.delegate_id = NEW.person_id AND NOT EXISTS (\n                SELECT FROM approvals_vote v\n                WHERE v.approval_id = NEW.approval_id AND v.fallen_at IS NULL\n                  AND (d.delegator_id = ANY(v.for_people) OR d.delegator_id = v.person_id))\n            ORDER BY d.delegator_id);\n        NEW.at = clock_timestamp();\n        RETURN NEW;\n    ",
                    hash="bf922e4aaf4dc598470d7c4ae9b8449f9d4f2192",
                    operation="INSERT",
                    pgid="pgtrigger_legal_vote_f722e",
                    table="approvals_vote",
                    when="BEFORE",
                ),
            ),
        ),
    ]

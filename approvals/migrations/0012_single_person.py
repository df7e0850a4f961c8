"""Single-person mode: who is alone decides on calls of their own agents, and the database says
when that is over."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

import core.triggers
from core.triggers import SEARCH_PATH

# Not only the row: the one who would decide has to be alone at this very moment.
SINGLE_PERSON = f"""
CREATE OR REPLACE FUNCTION approvals_single_person()
RETURNS boolean LANGUAGE sql STABLE SET search_path = {SEARCH_PATH} AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM accounts_singlepersonmode WHERE ended_at IS NULL)
        THEN (SELECT count(*) FROM accounts_user u WHERE approvals_may_decide(u.id)) = 1
        ELSE false END
$$
"""

EXCLUDED = f"""
CREATE OR REPLACE FUNCTION approvals_excluded(call uuid)
RETURNS TABLE (person_id bigint, why text) LANGUAGE sql STABLE SET search_path = {SEARCH_PATH} AS $$
    WITH party AS MATERIALIZED (SELECT p.person_id, p.why FROM approvals_parties(call) p)
    SELECT p.person_id, p.why FROM party p
    -- Who edited it has no vote all the same: it can be refused, and asked for anew.
    WHERE p.person_id IN (SELECT e.person_id FROM party e WHERE e.why = 'editor')
        OR NOT approvals_single_person()
    UNION ALL
    SELECT d.person_id, 'invited:' || d.inviter
    FROM approvals_dependents(ARRAY(SELECT p.person_id FROM party p)) d
$$
"""
BEFORE = f"""
CREATE OR REPLACE FUNCTION approvals_excluded(call uuid)
RETURNS TABLE (person_id bigint, why text) LANGUAGE sql STABLE SET search_path = {SEARCH_PATH} AS $$
    WITH party AS MATERIALIZED (SELECT p.person_id, p.why FROM approvals_parties(call) p)
    SELECT p.person_id, p.why FROM party p
    UNION ALL
    SELECT d.person_id, 'invited:' || d.inviter
    FROM approvals_dependents(ARRAY(SELECT p.person_id FROM party p)) d
$$
"""
DROP = "DROP FUNCTION approvals_single_person()"

# However a second person came to decide: by a group, a right of their own, or by being let in.
ENDS = f"""
CREATE OR REPLACE FUNCTION approvals_end_single_person() RETURNS trigger
LANGUAGE plpgsql SET search_path = {SEARCH_PATH} AS $$
BEGIN
    IF EXISTS (SELECT FROM accounts_singlepersonmode WHERE ended_at IS NULL) AND
        (SELECT count(*) FROM accounts_user u WHERE approvals_may_decide(u.id)) > 1
    THEN
        UPDATE accounts_singlepersonmode SET ended_at = clock_timestamp() WHERE ended_at IS NULL;
        INSERT INTO audit_entry (action, actor_kind, actor, reason) VALUES (
            'single_person_mode.ended', 'system', 'countersign',
            'There is a second approver: from now on nobody decides alone on calls of their own.');
    END IF;
    RETURN NULL;
END $$
"""
WATCHED = {
    "accounts_user": "INSERT OR UPDATE OF is_active, is_superuser",
    "accounts_user_groups": "INSERT OR UPDATE",
    "accounts_user_user_permissions": "INSERT OR UPDATE",
    "auth_group_permissions": "INSERT OR UPDATE",
}
DROP_ENDS = "DROP FUNCTION approvals_end_single_person()"


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0011_parties"),
        ("accounts", "0005_single_person"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.RunSQL(SINGLE_PERSON, DROP),
        migrations.RunSQL(EXCLUDED, BEFORE),
        migrations.RunSQL(ENDS, DROP_ENDS),
        *(
            migrations.RunSQL(
                f"CREATE TRIGGER approvals_end_single_person AFTER {what} ON {table}"
                " FOR EACH STATEMENT EXECUTE FUNCTION approvals_end_single_person()",
                f"DROP TRIGGER approvals_end_single_person ON {table}",
            )
            for table, what in WATCHED.items()
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="vote",
            name="legal_vote",
        ),
        migrations.AddField(
            model_name="vote",
            name="single_person",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="vote",
            trigger=pgtrigger.compiler.Trigger(
                name="legal_vote",
                sql=core.triggers.StrictTriggerSql(
                    declare="DECLARE asked approvals_approval;",
                    func="\n        -- Voters take turns here: each sees the votes before.\n        SELECT * INTO asked FROM approvals_approval WHERE call_id = NEW.approval_id FOR UPDATE;\n        IF asked.state IS DISTINCT FROM 'waiting' OR asked.decide_by <= clock_timestamp() AND\n            (SELECT c.clock_stopped_at FROM calls_call c WHERE c.id = NEW.approval_id) IS NULL\n        THEN\n            RAISE EXCEPTION 'nobody decides this call any more';\n        ELSIF NEW.fallen_at IS NOT NULL OR NEW.fallen_why <> '' THEN\n            RAISE EXCEPTION 'a vote begins by standing';\n        ELSIF NEW.person_id IN (SELECT x.person_id FROM approvals_excluded(NEW.approval_id) x) THEN\n            RAISE EXCEPTION 'nobody decides on calls that they have a part in, or that they edited';\n        ELSIF NOT approvals_may_decide(NEW.person_id) THEN\n            RAISE EXCEPTION 'this person may not decide';\n        ELSIF NOT (\n            SELECT bool_or(approvals_is_from(NEW.person_id, t.t ->> 'from'))\n            FROM jsonb_array_elements(asked.thresholds) t (t))\n        THEN\n            RAISE EXCEPTION 'the rule asks other people';\n        ELSIF NEW.seen_digest = '' OR NEW.seen_digest IS DISTINCT FROM\n            (SELECT c.call_digest FROM calls_call c WHERE c.id = NEW.approval_id)\n        THEN\n            RAISE EXCEPTION 'a vote on something else than what is held';\n        END IF;\n        -- Not excluded although they have a part in it: there is nobody else.\n        NEW.single_person = NEW.person_id IN\n            (SELECT p.person_id FROM approvals_parties(NEW.approval_id) p);\n        NEW.at = clock_timestamp();\n        RETURN NEW;\n    ",
                    hash="c8e65e5bba04295f36c08f2e36ad259aec26bc06",
                    operation="INSERT",
                    pgid="pgtrigger_legal_vote_f722e",
                    table="approvals_vote",
                    when="BEFORE",
                ),
            ),
        ),
    ]

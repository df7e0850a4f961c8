"""What the database itself knows of votes: who may decide, whose votes count, and what they make.

Code and triggers ask the same functions, so that they cannot disagree.
"""

from django.db import migrations

# Those whose word is never taken, with the reason. Whoever edited is added by editing.
EXCLUDED = """
CREATE OR REPLACE FUNCTION approvals_excluded(call uuid)
RETURNS TABLE (person_id bigint, why text) LANGUAGE sql STABLE AS $$
    SELECT c.person_id, 'person' FROM calls_call c WHERE c.id = call
    UNION ALL
    SELECT a.owner_id, 'owner' FROM calls_call c JOIN accounts_agent a ON a.id = c.agent_id
    WHERE c.id = call
$$
"""

MAY_DECIDE = """
CREATE OR REPLACE FUNCTION approvals_may_decide(person bigint)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT COALESCE((
        SELECT u.is_active AND (u.is_superuser OR EXISTS (
            SELECT FROM auth_permission p
            JOIN django_content_type t ON t.id = p.content_type_id AND t.app_label = 'approvals'
            WHERE p.codename = 'decide_approval' AND (
                p.id IN (SELECT up.permission_id FROM accounts_user_user_permissions up
                         WHERE up.user_id = u.id)
                OR p.id IN (SELECT gp.permission_id FROM auth_group_permissions gp
                            JOIN accounts_user_groups ug ON ug.group_id = gp.group_id
                            WHERE ug.user_id = u.id))))
        FROM accounts_user u WHERE u.id = person), false)
$$
"""

# Is this person one of those that a threshold names?
IS_FROM = """
CREATE OR REPLACE FUNCTION approvals_is_from(person bigint, source text)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN source = '' THEN true
        WHEN source LIKE 'group:%' THEN EXISTS (
            SELECT FROM accounts_user_groups ug JOIN auth_group g ON g.id = ug.group_id
            WHERE ug.user_id = person AND g.name = substr(source, 7))
        WHEN source LIKE 'person:%' THEN EXISTS (
            SELECT FROM accounts_user u WHERE u.id = person AND u.username = substr(source, 8))
        ELSE false END
$$
"""

# Do these two share a group that is no role, nor the one that a threshold names?
SAME_TEAM = """
CREATE OR REPLACE FUNCTION approvals_same_team(one bigint, other bigint, source text)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM accounts_user_groups a
        JOIN accounts_user_groups b ON b.group_id = a.group_id AND b.user_id = other
        JOIN auth_group g ON g.id = a.group_id
        WHERE a.user_id = one AND source <> 'group:' || g.name AND g.name NOT IN
            ('Administrator', 'Operator', 'Approver', 'Auditor', 'Viewer'))
$$
"""

# The votes that stand and whose people may decide now, threshold by threshold.
COUNTED = """
CREATE OR REPLACE FUNCTION approvals_counted(call uuid, thresholds jsonb)
RETURNS TABLE (place bigint, vote_id bigint, person_id bigint, approve boolean)
LANGUAGE sql STABLE AS $$
    WITH standing AS MATERIALIZED (
        SELECT v.id, v.person_id, v.approve, v.step_up FROM approvals_vote v
        JOIN calls_call c ON c.id = v.approval_id AND c.call_digest = v.seen_digest
        WHERE v.approval_id = call AND v.fallen_at IS NULL AND approvals_may_decide(v.person_id)
          AND v.person_id NOT IN (SELECT x.person_id FROM approvals_excluded(call) x)
    ), fitting AS (
        SELECT t.place, t.t, s.* FROM jsonb_array_elements(thresholds)
            WITH ORDINALITY AS t (t, place)
        JOIN standing s ON approvals_is_from(s.person_id, t.t ->> 'from')
        -- A confirmation makes a yes stronger; anybody may stop a call without one.
        WHERE NOT s.approve OR CASE t.t ->> 'step_up'
            WHEN '' THEN true
            WHEN 'totp' THEN s.step_up IN ('totp', 'passkey')
            WHEN 'passkey' THEN s.step_up = 'passkey'
            ELSE false END
    )
    SELECT f.place, f.id, f.person_id, f.approve FROM fitting f
    WHERE NOT f.approve OR f.t ->> 'distinct' <> 'team' OR NOT EXISTS (
        SELECT FROM fitting e WHERE e.place = f.place AND e.approve AND e.id < f.id
          AND approvals_same_team(e.person_id, f.person_id, f.t ->> 'from'))
$$
"""

# 'approved', 'denied' or '': a no that is met wins.
DECIDED = """
CREATE OR REPLACE FUNCTION approvals_decided(call uuid, thresholds jsonb)
RETURNS text LANGUAGE sql STABLE AS $$
    WITH met AS (
        SELECT count(c.vote_id) FILTER (WHERE c.approve) >= (t.t ->> 'approve')::int AS yes,
               count(c.vote_id) FILTER (WHERE NOT c.approve) >= (t.t ->> 'deny')::int AS no
        FROM jsonb_array_elements(thresholds) WITH ORDINALITY AS t (t, place)
        LEFT JOIN approvals_counted(call, thresholds) c ON c.place = t.place
        GROUP BY t.t, t.place
    )
    SELECT CASE WHEN bool_or(no) THEN 'denied' WHEN bool_or(yes) THEN 'approved' ELSE '' END
    FROM met
$$
"""

# A call leaves people's hands only with their approval; one without any is caught at its claim.
RELEASED = """
CREATE OR REPLACE FUNCTION approvals_released() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT a.state FROM approvals_approval a WHERE a.call_id = NEW.id) <> 'approved' THEN
        RAISE EXCEPTION 'nobody approved this call';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER approvals_released AFTER UPDATE ON calls_call FOR EACH ROW
WHEN (OLD.state = 'held' AND NEW.state = 'approved') EXECUTE FUNCTION approvals_released()
"""

FUNCTIONS = (EXCLUDED, MAY_DECIDE, IS_FROM, SAME_TEAM, COUNTED, DECIDED)

DROP = """
DROP TRIGGER approvals_released ON calls_call;
DROP FUNCTION approvals_released();
DROP FUNCTION approvals_decided(uuid, jsonb);
DROP FUNCTION approvals_counted(uuid, jsonb);
DROP FUNCTION approvals_same_team(bigint, bigint, text);
DROP FUNCTION approvals_is_from(bigint, text);
DROP FUNCTION approvals_may_decide(bigint);
DROP FUNCTION approvals_excluded(uuid)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0003_votes_that_fall"),
        ("calls", "0005_one_look"),
        ("accounts", "0002_watch_memberships"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        *(migrations.RunSQL(function, migrations.RunSQL.noop) for function in FUNCTIONS),
        migrations.RunSQL(RELEASED, DROP),
    ]

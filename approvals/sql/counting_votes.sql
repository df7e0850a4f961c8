-- Which votes count, and what they make of a call.

-- The last but one asks one of break-glass, which comes after (break_glass.sql).
SET LOCAL check_function_bodies = off;

-- Is this person one of those that a threshold names? A rule that names a person means them by
-- every name that they have or had: no name is used twice.
CREATE OR REPLACE FUNCTION approvals_is_from(person bigint, source text)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT CASE
        WHEN source = '' THEN true
        WHEN source LIKE 'group:%' THEN EXISTS (
            SELECT FROM accounts_user_groups ug JOIN auth_group g ON g.id = ug.group_id
            WHERE ug.user_id = person AND g.name = substr(source, 7))
        WHEN source LIKE 'person:%' THEN EXISTS (
            SELECT FROM accounts_user u WHERE u.id = person AND u.username = substr(source, 8))
            OR EXISTS (
            SELECT FROM accounts_usedname n
            WHERE n.person_id = person AND n.name = substr(source, 8))
        ELSE false END
$$;

-- Do these two share a group that is no role, nor the one that a threshold names?
CREATE OR REPLACE FUNCTION approvals_same_team(one bigint, other bigint, source text)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM accounts_user_groups a
        JOIN accounts_user_groups b ON b.group_id = a.group_id AND b.user_id = other
        JOIN auth_group g ON g.id = a.group_id
        WHERE a.user_id = one AND source <> 'group:' || g.name AND g.name NOT IN
            ('Administrator', 'Operator', 'Approver', 'Auditor', 'Viewer'))
$$;

-- The votes that stand and whose people may decide now, threshold by threshold. A threshold that
-- counts late does so once the call was widened to it (approvals/widening.py).
CREATE OR REPLACE FUNCTION approvals_counted(call uuid, thresholds jsonb)
RETURNS TABLE (place bigint, vote_id bigint, person_id bigint, approve boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH standing AS MATERIALIZED (
        SELECT v.id, v.person_id, v.approve, v.step_up FROM approvals_vote v
        JOIN calls_call c ON c.id = v.approval_id AND c.call_digest = v.seen_digest
        WHERE v.approval_id = call AND v.fallen_at IS NULL AND approvals_may_decide(v.person_id)
          AND v.person_id NOT IN (SELECT x.person_id FROM approvals_excluded(call) x)
    ), fitting AS (
        SELECT t.place, t.t, s.* FROM jsonb_array_elements(thresholds)
            WITH ORDINALITY AS t (t, place)
        JOIN standing s ON approvals_is_from(s.person_id, t.t ->> 'from')
        WHERE COALESCE((t.t ->> 'after_min')::int, 0) <=
            (SELECT a.widened_min FROM approvals_approval a WHERE a.call_id = call)
        -- A confirmation makes a yes stronger; anybody may stop a call without one.
        AND (NOT s.approve OR CASE t.t ->> 'step_up'
            WHEN '' THEN true
            WHEN 'totp' THEN s.step_up IN ('totp', 'oidc', 'passkey')
            WHEN 'passkey' THEN s.step_up = 'passkey'
            ELSE false END)
    )
    SELECT f.place, f.id, f.person_id, f.approve FROM fitting f
    WHERE NOT f.approve OR f.t ->> 'distinct' <> 'team' OR NOT EXISTS (
        SELECT FROM fitting e WHERE e.place = f.place AND e.approve AND e.id < f.id
          AND approvals_same_team(e.person_id, f.person_id, f.t ->> 'from'))
$$;

-- 'approved', 'denied' or '': of the clauses of thresholds, one from each rule that asks, every
-- one has to be met, and a no that is met wins. Break-glass stands for every yes.
CREATE OR REPLACE FUNCTION approvals_decided(call uuid, thresholds jsonb)
RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH met AS (
        SELECT COALESCE((t.t ->> 'clause')::int, 0) AS clause,
               count(c.vote_id) FILTER (WHERE c.approve) >= (t.t ->> 'approve')::int AS yes,
               count(c.vote_id) FILTER (WHERE NOT c.approve) >= (t.t ->> 'deny')::int AS no
        FROM jsonb_array_elements(thresholds) WITH ORDINALITY AS t (t, place)
        LEFT JOIN approvals_counted(call, thresholds) c ON c.place = t.place
        GROUP BY t.t, t.place
    ), clauses AS (
        SELECT bool_or(yes) AS yes, bool_or(no) AS no FROM met GROUP BY clause
    )
    SELECT CASE WHEN bool_or(no) THEN 'denied' WHEN bool_and(yes) THEN 'approved'
        WHEN approvals_broken(call) THEN 'approved' ELSE '' END
    FROM clauses
$$;

-- A call leaves people's hands only with their approval; one without any is caught at its claim.
CREATE OR REPLACE FUNCTION approvals_released()
RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF (SELECT a.state FROM approvals_approval a WHERE a.call_id = NEW.id) <> 'approved' THEN
        RAISE EXCEPTION 'nobody approved this call';
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER approvals_released AFTER UPDATE ON calls_call FOR EACH ROW
WHEN (OLD.state = 'held' AND NEW.state = 'approved') EXECUTE FUNCTION approvals_released();

-- Who may decide on a call, and whose word is never taken. Code and triggers ask the same functions,
-- so that they cannot disagree.

-- The last function asks one of delegations, which come after (delegations.sql).
SET LOCAL check_function_bodies = off;

CREATE OR REPLACE FUNCTION approvals_may_decide(person bigint)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
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
$$;

-- Who let these accounts in, or let those in who did, while nobody else has confirmed them: the same
-- person may be behind them.
CREATE OR REPLACE FUNCTION approvals_inviters(people bigint[])
RETURNS TABLE (person_id bigint, invited text)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH RECURSIVE found (id, invited) AS (
        SELECT i.id, u.username::text FROM accounts_user u
        JOIN accounts_user i ON i.id IN (u.invited_by_id, u.let_in_by_id)
        WHERE u.id = ANY(people) AND u.unconfirmed_until > now()
        UNION
        SELECT i.id, f.invited FROM found f
        JOIN accounts_user u ON u.id = f.id AND u.unconfirmed_until > now()
        JOIN accounts_user i ON i.id IN (u.invited_by_id, u.let_in_by_id)
    )
    SELECT id, invited FROM found
$$;

-- Who has a part in a call: it is asked in their name, or by a means that they hold; or they edited
-- what is sent; or they may still be behind the account of one of these ('let_in:' and its name).
-- The strongest reason stands first.
CREATE OR REPLACE FUNCTION approvals_parties(call uuid)
RETURNS TABLE (person_id bigint, why text)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH direct (person_id, why) AS MATERIALIZED (
        SELECT c.person_id, 'person' FROM calls_call c WHERE c.id = call
        UNION ALL
        SELECT a.owner_id, 'owner' FROM calls_call c JOIN accounts_agent a ON a.id = c.agent_id
        WHERE c.id = call
        UNION ALL
        SELECT a.created_by_id, 'creator' FROM calls_call c JOIN accounts_agent a ON a.id = c.agent_id
        WHERE c.id = call AND a.created_by_id IS NOT NULL
        UNION ALL
        SELECT t.created_by_id, 'issuer' FROM calls_call c
        JOIN accounts_agenttoken t ON t.id = c.token_id
        WHERE c.id = call AND t.created_by_id IS NOT NULL
        UNION ALL
        SELECT r.person_id, 'asker' FROM calls_rerun r WHERE r.again_id = call
        UNION ALL
        SELECT m.person_id, 'editor' FROM calls_amendment m WHERE m.call_id = call
    )
    SELECT d.person_id, d.why FROM direct d
    UNION ALL
    SELECT i.person_id, 'let_in:' || i.invited
    FROM approvals_inviters(ARRAY(SELECT d.person_id FROM direct d)) i
$$;

-- Accounts that these people let in, or that those did, and that nobody else has confirmed: the
-- same person may be behind them.
CREATE OR REPLACE FUNCTION approvals_dependents(people bigint[])
RETURNS TABLE (person_id bigint, inviter text)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH RECURSIVE found (id, inviter) AS (
        SELECT u.id, i.username::text FROM accounts_user u
        JOIN accounts_user i ON i.id IN (u.invited_by_id, u.let_in_by_id) AND i.id = ANY(people)
        WHERE u.unconfirmed_until > now()
        UNION
        SELECT u.id, f.inviter FROM accounts_user u
        JOIN found f ON f.id IN (u.invited_by_id, u.let_in_by_id)
        WHERE u.unconfirmed_until > now()
    )
    SELECT id, inviter FROM found
$$;

-- Those whose votes can count at all: active, with the right, who signed in and did not only come by
-- another person's link. `hands`: the accounts behind which the same person may be.
CREATE OR REPLACE FUNCTION approvals_able()
RETURNS TABLE (person_id bigint, hands bigint[])
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT u.id, u.id || ARRAY(SELECT i.person_id FROM approvals_inviters(ARRAY[u.id]) i)
    FROM accounts_user u
    -- As User.is_vouched_for.
    WHERE u.is_active AND u.last_login IS NOT NULL
        AND (u.let_in_by_id IS NULL OR left(u.password, 1) <> '!' OR EXISTS (
            SELECT FROM accounts_identity i WHERE i.person_id = u.id AND i.disconnected_at IS NULL))
        AND approvals_may_decide(u.id)
$$;

-- Is there a second approver? Two accounts behind which there may be one person are one.
CREATE OR REPLACE FUNCTION approvals_second_approver()
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH able AS MATERIALIZED (SELECT a.person_id, a.hands FROM approvals_able() a)
    SELECT EXISTS (
        SELECT FROM able a JOIN able b ON a.person_id < b.person_id AND NOT a.hands && b.hands)
$$;

-- Single-person mode. Not only the row: there has to be no second approver at this very moment.
CREATE OR REPLACE FUNCTION approvals_single_person()
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM accounts_singlepersonmode WHERE ended_at IS NULL)
        THEN NOT approvals_second_approver() ELSE false END
$$;

-- Is this the one person of that mode? None whom another account let in is, until confirmed.
CREATE OR REPLACE FUNCTION approvals_alone(person bigint)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT CASE WHEN approvals_single_person() THEN NOT EXISTS (
        SELECT FROM accounts_user u WHERE u.id = person AND u.unconfirmed_until > now())
    ELSE false END
$$;

-- Those whose word is never taken, with the reason. Two accounts that one person let in are taken for
-- two people: in a young house one administrator lets everybody in. Cards show it.
CREATE OR REPLACE FUNCTION approvals_excluded(call uuid)
RETURNS TABLE (person_id bigint, why text)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH party AS MATERIALIZED (SELECT p.person_id, p.why FROM approvals_parties(call) p)
    SELECT p.person_id, p.why FROM party p
    -- Who edited it has no vote all the same: it can be refused, and asked for anew.
    WHERE p.person_id IN (SELECT e.person_id FROM party e WHERE e.why = 'editor')
        OR NOT approvals_alone(p.person_id)
    UNION ALL
    SELECT d.person_id, 'invited:' || d.inviter
    FROM approvals_dependents(
        ARRAY(SELECT p.person_id FROM party p WHERE p.why NOT LIKE 'let_in:%')) d
    UNION ALL
    SELECT s.person_id, 'spoken_for:' || s.voter FROM approvals_spoken_for(call) s
$$;

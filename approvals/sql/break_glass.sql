-- Break-glass: one person's vote lets one pending call run, whoever the rule asks.

CREATE OR REPLACE FUNCTION approvals_may_break_glass(person bigint)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT approvals_may_decide(person) AND COALESCE((
        SELECT u.is_superuser OR EXISTS (
            SELECT FROM auth_permission p
            JOIN django_content_type t ON t.id = p.content_type_id AND t.app_label = 'approvals'
            WHERE p.codename = 'break_glass' AND (
                p.id IN (SELECT up.permission_id FROM accounts_user_user_permissions up
                         WHERE up.user_id = u.id)
                OR p.id IN (SELECT gp.permission_id FROM auth_group_permissions gp
                            JOIN accounts_user_groups ug ON ug.group_id = gp.group_id
                            WHERE ug.user_id = u.id)))
        FROM accounts_user u WHERE u.id = person), false)
$$;

-- Who has a part in a call, or may be one person with somebody who has: single-person mode or not.
CREATE OR REPLACE FUNCTION approvals_involved(call uuid)
RETURNS TABLE (person_id bigint, why text)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH party AS MATERIALIZED (
        SELECT p.person_id, p.why FROM approvals_parties(call) p WHERE p.person_id IS NOT NULL
    )
    SELECT p.person_id, p.why FROM party p
    UNION ALL
    SELECT d.person_id, 'invited:' || d.inviter FROM approvals_dependents(
        ARRAY(SELECT p.person_id FROM party p WHERE p.why NOT LIKE 'let_in:%')) d
$$;

-- May this person be told of one's break-glass, or review it? They decide, can only be somebody else,
-- and have no part in the call.
CREATE OR REPLACE FUNCTION approvals_is_second(person bigint, broke bigint, call uuid)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT person <> broke AND approvals_may_decide(person)
        AND person NOT IN (SELECT d.person_id FROM approvals_dependents(ARRAY[broke]) d)
        AND person NOT IN (SELECT i.person_id FROM approvals_inviters(ARRAY[broke]) i)
        AND person NOT IN (SELECT p.person_id FROM approvals_involved(call) p)
$$;

-- Does such a vote stand? Its passkey signed that it is one, and who was told. Never for a call that
-- its person has a part in, single-person mode or not, and never past a denial.
CREATE OR REPLACE FUNCTION approvals_broken(call uuid)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM approvals_breakglass b
        JOIN calls_call c ON c.id = b.approval_id AND c.call_digest = b.seen_digest
        JOIN approvals_vote v ON v.approval_id = b.approval_id AND v.person_id = b.person_id
            AND v.seen_digest = b.seen_digest AND v.approve AND v.fallen_at IS NULL
        JOIN accounts_proof p ON p.id = v.proof_id AND p.method = 'passkey'
            AND starts_with(p.statement, format(
                E'countersign vote 1\nvote: yes\nperson: %s\ncall: %s\ndigest: %s\nbreak-glass: %s\n',
                b.person_id, b.approval_id, b.seen_digest, b.second_id))
        WHERE b.approval_id = call AND approvals_may_break_glass(b.person_id)
          AND b.person_id NOT IN (SELECT p.person_id FROM approvals_involved(call) p)
          AND NOT EXISTS (
              SELECT FROM approvals_vote n
              WHERE n.approval_id = call AND NOT n.approve AND n.fallen_at IS NULL))
$$;

-- Delegations: who votes in whose place, and that both never vote on the same call.

-- They ask for a column of calls that were widened, which a later migration makes.
SET LOCAL check_function_bodies = off;

-- The delegations that hold for a call now. Whoever has a part in the call, or may not decide, has no
-- vote that somebody could give for them; nor does anybody give it where a rule asks them and not
-- their delegate.
CREATE OR REPLACE FUNCTION approvals_delegations(call uuid)
RETURNS TABLE (delegator_id bigint, delegate_id bigint, asks_both boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT d.delegator_id, d.delegate_id, d.asks_both
    FROM approvals_delegation d JOIN calls_call c ON c.id = call
    WHERE d.begins_at <= now() AND d.ends_at > now()
      AND (d.server_id IS NULL OR d.server_id = c.server_id)
      AND (d.group_id IS NULL OR EXISTS (
          SELECT FROM approvals_approval a
          CROSS JOIN jsonb_array_elements(a.thresholds) t (t)
          JOIN auth_group g ON g.id = d.group_id
          WHERE a.call_id = call AND t.t ->> 'from' = 'group:' || g.name
            AND COALESCE((t.t ->> 'after_min')::int, 0) <= a.widened_min))
      AND approvals_may_decide(d.delegator_id)
      AND NOT EXISTS (
          SELECT FROM approvals_approval a
          CROSS JOIN jsonb_array_elements(a.thresholds) t (t)
          WHERE a.call_id = call AND COALESCE((t.t ->> 'after_min')::int, 0) <= a.widened_min
          GROUP BY COALESCE((t.t ->> 'clause')::int, 0)
          HAVING bool_or(approvals_is_from(d.delegator_id, t.t ->> 'from'))
             AND NOT bool_or(approvals_is_from(d.delegate_id, t.t ->> 'from')))
      AND d.delegator_id NOT IN (
          SELECT p.person_id FROM approvals_parties(call) p WHERE p.person_id IS NOT NULL)
$$;

-- Whose vote another one has given, or who voted already in the place of somebody else: they have no
-- vote besides. Votes from before a delegation stay.
CREATE OR REPLACE FUNCTION approvals_spoken_for(call uuid)
RETURNS TABLE (person_id bigint, voter text)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH standing AS MATERIALIZED (
        SELECT v.person_id, v.for_people FROM approvals_vote v
        WHERE v.approval_id = call AND v.fallen_at IS NULL
    ), held AS MATERIALIZED (
        SELECT d.delegator_id, d.delegate_id FROM approvals_delegations(call) d
        WHERE EXISTS (SELECT FROM standing)
    ), bound (person_id, voter_id) AS (
        SELECT f.id, s.person_id FROM standing s CROSS JOIN unnest(s.for_people) f (id)
        UNION
        SELECT h.delegator_id, s.person_id FROM held h
        JOIN standing s ON s.person_id = h.delegate_id
        UNION
        SELECT h.delegate_id, s.person_id FROM held h
        JOIN standing s ON s.person_id = h.delegator_id
    )
    SELECT b.person_id, u.username::text FROM bound b JOIN accounts_user u ON u.id = b.voter_id
    WHERE NOT EXISTS (SELECT FROM standing s WHERE s.person_id = b.person_id)
$$;

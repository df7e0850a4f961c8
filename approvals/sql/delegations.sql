-- Delegations: who votes in whose place, and that both never vote on the same call.

-- The delegations that hold for a call, at whatever time. Whoever has a part in the call, or may not
-- decide, has no vote that somebody could give for them; nor does anybody give it where a rule asks
-- them and not their delegate.
CREATE OR REPLACE FUNCTION approvals_delegations_ever(call uuid)
RETURNS TABLE (
    delegator_id bigint, delegate_id bigint, asks_both boolean,
    begins_at timestamptz, ends_at timestamptz)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT d.delegator_id, d.delegate_id, d.asks_both, d.begins_at, d.ends_at
    FROM approvals_delegation d JOIN calls_call c ON c.id = call
    WHERE d.ends_at > (SELECT a.asked_at FROM approvals_approval a WHERE a.call_id = call)
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

-- Those that hold now.
CREATE OR REPLACE FUNCTION approvals_delegations(call uuid)
RETURNS TABLE (delegator_id bigint, delegate_id bigint, asks_both boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT d.delegator_id, d.delegate_id, d.asks_both FROM approvals_delegations_ever(call) d
    WHERE d.begins_at <= now() AND d.ends_at > now()
$$;

-- Of two who are one vote, the one who has not voted, and how the other one did: also where their
-- delegation ended after that vote. `yields`: the vote that a denial takes the place of. Only a
-- delegator's approval gives way to their delegate: to name somebody takes away nobody's no, and
-- undoes nobody's vote.
DROP FUNCTION IF EXISTS approvals_bound(uuid);
CREATE FUNCTION approvals_bound(call uuid)
RETURNS TABLE (person_id bigint, voter text, approve boolean, yields bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    WITH standing AS MATERIALIZED (
        SELECT v.id, v.person_id, v.for_people, v.approve, v.at FROM approvals_vote v
        WHERE v.approval_id = call AND v.fallen_at IS NULL
    ), pairs AS MATERIALIZED (
        SELECT d.* FROM approvals_delegations_ever(call) d WHERE EXISTS (SELECT FROM standing)
    ), bound (person_id, voter_id, approve, yields) AS (
        SELECT f.id, s.person_id, s.approve, NULL::bigint
        FROM standing s CROSS JOIN unnest(s.for_people) f (id)
        UNION
        SELECT CASE s.person_id WHEN p.delegate_id THEN p.delegator_id ELSE p.delegate_id END,
            s.person_id, s.approve,
            CASE WHEN s.approve AND s.person_id = p.delegator_id THEN s.id END
        FROM pairs p JOIN standing s ON s.person_id IN (p.delegator_id, p.delegate_id)
        WHERE (p.begins_at <= now() AND p.ends_at > now())
           OR (p.begins_at <= s.at AND p.ends_at > s.at)
    )
    SELECT b.person_id, u.username::text, b.approve, b.yields
    FROM bound b JOIN accounts_user u ON u.id = b.voter_id
    WHERE NOT EXISTS (SELECT FROM standing s WHERE s.person_id = b.person_id)
$$;

-- Whose vote another one has given: they have no vote besides, not even a denial.
CREATE OR REPLACE FUNCTION approvals_spoken_for(call uuid)
RETURNS TABLE (person_id bigint, voter text)
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT b.person_id, b.voter FROM approvals_bound(call) b WHERE b.yields IS NULL
$$;

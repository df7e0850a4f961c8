-- Erasing what a call asked and got (approvals/sql/erasing.sql). Triggers let nothing else change it.

-- Does the transaction that asks have the entry that the call's payload is erased?
CREATE OR REPLACE FUNCTION calls_is_being_erased(erased uuid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM audit_entryrow e JOIN audit_name a ON a.id = e.action
        WHERE e.call_id = erased AND e.seq IS NULL AND e.transaction = pg_current_xact_id()
          AND a.kind = 'action' AND a.text = 'payload.erased')
$$;

-- The entry of a legal hold in force that covers the call: by itself, or by its agent or a person of
-- its entries. NULL: none does. Maintenance asks too, which reads no calls.
CREATE OR REPLACE FUNCTION calls_hold_of(held uuid) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    -- First the holds, by the index of actions, of which 1 and 2 are moves: else all entries may be
    -- read for each call.
    WITH actions AS MATERIALIZED (
        SELECT array_agg(a.id) FILTER (WHERE a.text = 'record.hold_placed') AS placed,
            array_agg(a.id) FILTER (WHERE a.text = 'record.hold_lifted') AS lifted
        FROM audit_name a
        WHERE a.kind = 'action'
          AND left(a.text, 500) IN ('record.hold_placed', 'record.hold_lifted')
    ), lifted AS MATERIALIZED (
        SELECT (l.details ->> 'hold')::bigint AS hold FROM audit_entryrow l
        WHERE l.action = ANY((SELECT a.lifted FROM actions a)::int[]) AND l.action > 2
    ), holds AS MATERIALIZED (
        SELECT h.id, h.details FROM audit_entryrow h
        WHERE h.action = ANY((SELECT a.placed FROM actions a)::int[]) AND h.action > 2
          AND h.id NOT IN (SELECT l.hold FROM lifted l WHERE l.hold IS NOT NULL)
    )
    SELECT h.id FROM holds h
    WHERE (h.details ->> 'kind' = 'everything'
        OR (h.details ->> 'call')::uuid = held
        OR EXISTS (
            SELECT FROM calls_call c
            WHERE c.id = held AND h.details -> 'subjects' @> to_jsonb(
                CASE h.details ->> 'kind' WHEN 'agent' THEN c.agent_id
                    WHEN 'person' THEN c.person_id END))
        OR EXISTS (
            SELECT FROM audit_entryrow e
            CROSS JOIN LATERAL unnest(ARRAY[e.actor, e.agent, e.person]) AS used (number)
            JOIN audit_name n ON n.id = used.number
            WHERE e.call_id = held AND n.kind = h.details ->> 'kind'
              AND h.details -> 'subjects' @> to_jsonb(n.subject)))
    ORDER BY h.id LIMIT 1
$$;

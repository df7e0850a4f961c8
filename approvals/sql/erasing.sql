-- Erases what a call asked and got, and every copy of it, in one go. Only with its entry, written
-- before in the same transaction; never of a call that may still move, nor under a legal hold. The
-- application's role may call it, and may change or remove nothing of this by itself.
-- `kept`: of entries that lose their details, by id, what stays of them (audit/forgetting.py).
CREATE OR REPLACE FUNCTION approvals_erase_payload(erased uuid, reasons int[], kept jsonb, heed boolean)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    state text := (SELECT c.state FROM calls_call c WHERE c.id = erased FOR UPDATE);
    hold bigint := calls_hold_of(erased);
    names int[];
    gone text[];
BEGIN
    IF state IS NULL OR state IN ('held', 'approved', 'queued', 'running') THEN
        RAISE EXCEPTION 'only the payload of a call that has ended is erased';
    ELSIF NOT calls_is_being_erased(erased) THEN
        RAISE EXCEPTION 'no payload is erased without its entry';
    -- The owner repeats, after a restore, what was erased before a hold that was lifted since.
    ELSIF hold IS NOT NULL AND (heed OR NOT pg_has_role(session_user, (
        SELECT c.relowner FROM pg_class c WHERE c.oid = 'audit_entryrow'::regclass), 'USAGE'))
    THEN
        RAISE EXCEPTION 'the call is under legal hold %', hold;
    ELSIF EXISTS (
        SELECT FROM approvals_grant g WHERE g.call_id = erased AND g.revoked_at IS NULL
            AND g.expires_at > clock_timestamp() AND g.uses < g.max_uses)
    THEN
        RAISE EXCEPTION 'a standing approval of the call is in force';
    END IF;

    UPDATE calls_call c SET arguments = '{}', progress_message = '', upstream_task = '',
        outcome = 'Its payload was erased.' WHERE c.id = erased;
    UPDATE calls_amendment SET arguments = '{}', note = '' WHERE call_id = erased;
    UPDATE calls_latereply SET sentence = '', body = '' WHERE call_id = erased;
    UPDATE calls_logline SET logger = '', text = '' WHERE call_id = erased;
    UPDATE calls_input SET key = 'erased ' || id, request = '{}', message = '',
        response = CASE WHEN response = '' THEN '' ELSE '{}' END WHERE call_id = erased;
    DELETE FROM calls_resultpart WHERE call_id = erased;
    DELETE FROM calls_receivedresult WHERE call_id = erased;
    DELETE FROM calls_result WHERE call_id = erased;
    UPDATE approvals_comment SET text = '' WHERE approval_id = erased;
    UPDATE approvals_vote SET reason = '' WHERE approval_id = erased;
    UPDATE approvals_grant SET arguments = '{}', bounds = '[]', note = '' WHERE call_id = erased;

    -- The words of its entries, as far as no other entry has them.
    SELECT array_agg(n.id), array_agg(encode(n.commitment, 'hex')) INTO names, gone
    FROM audit_name n
    WHERE n.id = ANY(reasons) AND n.kind = 'reason' AND n.salt IS NOT NULL AND NOT EXISTS (
        SELECT FROM audit_entryrow e
        WHERE e.reason = n.id AND (e.seq IS NULL OR e.seq > 1 OR e.to_state IN ('refused', 'invalid'))
          AND (e.call_id IS DISTINCT FROM erased OR e.transaction = pg_current_xact_id()))
        AND n.id NOT IN (
            SELECT e.reason FROM audit_entryrow e
            WHERE e.call_id = erased AND e.seq = 1 AND e.to_state NOT IN ('refused', 'invalid')
              AND e.reason IS NOT NULL);
    IF names IS NULL AND kept = '{}' THEN
        RETURN;
    END IF;
    INSERT INTO audit_entry (action, actor_kind, actor_id, actor, reason, details)
    SELECT 'record.forgotten', e.actor_kind, e.actor_id, e.actor, e.reason, jsonb_build_object(
        'kinds', jsonb_build_object(
            'reason', COALESCE(cardinality(names), 0),
            'details', (SELECT count(*) FROM jsonb_object_keys(kept))),
        'commitments', to_jsonb(COALESCE(gone, '{}') || ARRAY(
            SELECT one.value ->> 'commitment' FROM jsonb_each(kept) one)))
    FROM audit_entry e
    WHERE e.call_id = erased AND e.seq IS NULL AND e.transaction = pg_current_xact_id()
      AND e.action = 'payload.erased'
    ORDER BY e.id DESC LIMIT 1;
    UPDATE audit_name SET salt = NULL, subject = NULL, text = '', server = '', definition = ''
    WHERE id = ANY(names);
    UPDATE audit_entryrow r SET salt = NULL, details = one.value
    FROM jsonb_each(kept) one
    WHERE r.id = one.key::bigint AND r.call_id = erased AND r.salt IS NOT NULL;
END $$;
REVOKE EXECUTE ON FUNCTION approvals_erase_payload FROM PUBLIC;

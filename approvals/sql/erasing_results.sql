-- Erases a call's result alone, with its parts and as received. Only with its entry, written before
-- in the same transaction; never of a call that may still move, nor under a legal hold. The
-- application's role may call it, and may remove no result by itself.
CREATE OR REPLACE FUNCTION approvals_erase_result(erased uuid, heed boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    state text := (SELECT c.state FROM calls_call c WHERE c.id = erased FOR UPDATE);
    hold bigint := calls_hold_of(erased);
BEGIN
    IF state IS NULL OR state IN ('held', 'approved', 'queued', 'running') THEN
        RAISE EXCEPTION 'only the result of a call that has ended is erased';
    ELSIF NOT EXISTS (
        SELECT FROM audit_entryrow e JOIN audit_name a ON a.id = e.action
        WHERE e.call_id = erased AND e.seq IS NULL AND e.transaction = pg_current_xact_id()
          AND a.kind = 'action' AND a.text = 'result.erased')
    THEN
        RAISE EXCEPTION 'no result is erased without its entry';
    -- The owner repeats, after a restore, what was erased before a hold that was lifted since.
    ELSIF hold IS NOT NULL AND (heed OR NOT pg_has_role(session_user, (
        SELECT c.relowner FROM pg_class c WHERE c.oid = 'audit_entryrow'::regclass), 'USAGE'))
    THEN
        RAISE EXCEPTION 'the call is under legal hold %', hold;
    END IF;
    DELETE FROM calls_resultpart WHERE call_id = erased;
    DELETE FROM calls_receivedresult WHERE call_id = erased;
    DELETE FROM calls_result WHERE call_id = erased;
END $$;
REVOKE EXECUTE ON FUNCTION approvals_erase_result FROM PUBLIC;

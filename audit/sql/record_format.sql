-- A record that was sealed as `countersign`, as every installation's was, goes on under a name of its
-- own. The first entry of the second format says so, and holds the last checkpoint under the earlier name.
DO $$
DECLARE
    before text := (SELECT name FROM audit_origin ORDER BY number DESC LIMIT 1);
    chosen text := 'countersign.invalid/' || encode(uuid_send(gen_random_uuid()), 'hex');
    last record;
BEGIN
    EXECUTE format(
        'ALTER TABLE audit_signer ADD COLUMN name varchar(60) NOT NULL DEFAULT %L', before);
    IF before <> 'countersign' THEN
        RETURN;
    END IF;
    EXECUTE format(
        'ALTER TABLE audit_origin DROP COLUMN name,'
        ' ADD COLUMN name varchar(60) NOT NULL DEFAULT %L', chosen);
    SELECT size, note INTO last FROM audit_checkpoint ORDER BY id DESC LIMIT 1;
    IF FOUND THEN
        INSERT INTO audit_entry (action, actor_kind, actor, details)
        VALUES ('record.format', 'system', 'countersign', jsonb_build_object(
            'format', 2, 'name', chosen, 'size', last.size, 'end', last.note));
    END IF;
END $$;

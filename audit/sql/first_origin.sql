-- What checkpoints are signed as: a name that no other installation has, so that a checkpoint tells whose
-- it is. Origins and signers to come take the same.
DO $$
DECLARE
    chosen text := 'countersign.invalid/' || encode(uuid_send(gen_random_uuid()), 'hex');
BEGIN
    -- A demo's record is one from its birth (audit/demo.py).
    IF current_setting('countersign.demo', true) = 'on' THEN
        chosen := 'demo.' || chosen;
    END IF;
    EXECUTE format('ALTER TABLE audit_origin ALTER COLUMN name SET DEFAULT %L', chosen);
    EXECUTE format('ALTER TABLE audit_signer ALTER COLUMN name SET DEFAULT %L', chosen);
END $$;

-- Where this record began: the cluster and the table by which a copy of it is known.
INSERT INTO audit_origin (number, index, kept, system_identifier, table_oid)
SELECT 1, 0, 0, system_identifier::text, 'audit_origin'::regclass::oid::bigint
FROM pg_control_system();

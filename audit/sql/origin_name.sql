-- What checkpoints are signed as. A record that was sealed before keeps its name; another has one that
-- no other installation has, so that a checkpoint tells whose it is. Origins to come take the same.
DO $$
DECLARE
    chosen text := 'countersign.invalid/' || encode(uuid_send(gen_random_uuid()), 'hex');
BEGIN
    -- A demo's record is one from its birth (audit/demo.py).
    IF current_setting('countersign.demo', true) = 'on' THEN
        chosen := 'demo.' || chosen;
    END IF;
    IF EXISTS (SELECT FROM audit_signer) OR EXISTS (SELECT FROM audit_checkpoint) THEN
        chosen := 'countersign';
    END IF;
    EXECUTE format(
        'ALTER TABLE audit_origin ADD COLUMN name varchar(60) NOT NULL DEFAULT %L', chosen);
END $$;

-- Where this record began: the cluster and the table by which a copy of it is known.
INSERT INTO audit_origin (number, index, kept, system_identifier, table_oid)
SELECT 1, 0, 0, system_identifier::text, 'audit_origin'::regclass::oid::bigint
FROM pg_control_system();

-- Entries of before get the salt of their leaf, and those without one a new one. The table is
-- written anew as a whole, which is no UPDATE: no trigger of its has to look away, and no row
-- stands twice.
CREATE FUNCTION audit_salt_of(sealed bigint) RETURNS bytea LANGUAGE sql VOLATILE AS $$
    SELECT COALESCE(
        (SELECT salt FROM public.audit_leaf WHERE entry_id = sealed),
        uuid_send(gen_random_uuid()))
$$;
ALTER TABLE audit_entry ADD COLUMN format smallint NOT NULL DEFAULT 1, ADD COLUMN salt bytea;
ALTER TABLE audit_entry
    ALTER COLUMN salt TYPE bytea USING audit_salt_of(id),
    ALTER COLUMN salt SET DEFAULT uuid_send(gen_random_uuid()),
    ALTER COLUMN salt SET NOT NULL;
DROP FUNCTION audit_salt_of(bigint);

-- Names stand once, and entries hold their numbers. What a leaf says of a name is its commitment
-- alone (audit/verify.py says it in Python), so that a name can be forgotten and every proof holds.

CREATE OR REPLACE FUNCTION audit_commitment(
    salt bytea, kind text, subject bigint, name text, server text, definition text)
RETURNS bytea
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT sha256(salt
        || convert_to(kind, 'UTF8') || '\x00'
        || convert_to(COALESCE(subject::text, ''), 'UTF8') || '\x00'
        || convert_to(name, 'UTF8') || '\x00'
        || convert_to(server, 'UTF8') || '\x00'
        || convert_to(definition, 'UTF8'))
$$;

-- The number of a name, which is added if nobody used it before. Two who do that at once add it
-- twice: nobody waits for another's transaction, and readers ask for all numbers of a name.
CREATE OR REPLACE FUNCTION audit_name_number(
    wanted_kind text, wanted_subject bigint, wanted text,
    wanted_server text DEFAULT '', wanted_definition text DEFAULT '')
RETURNS int
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    number int;
    fresh bytea;
BEGIN
    SELECT n.id INTO number FROM audit_name n
    WHERE n.kind = wanted_kind AND left(n.text, 500) = left(wanted, 500) AND n.text = wanted
      AND n.salt IS NOT NULL
      AND n.subject IS NOT DISTINCT FROM wanted_subject
      AND n.server = wanted_server AND n.definition = wanted_definition
    LIMIT 1;
    IF number IS NULL THEN
        fresh := uuid_send(gen_random_uuid());
        INSERT INTO audit_name (kind, subject, text, server, definition, salt, commitment)
        VALUES (wanted_kind, wanted_subject, wanted, wanted_server, wanted_definition, fresh,
            audit_commitment(
                fresh, wanted_kind, wanted_subject, wanted, wanted_server, wanted_definition))
        RETURNING id INTO number;
    END IF;
    RETURN number;
END $$;

-- The number that grows with every change of configuration: every process watches it.

CREATE TABLE core_generation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    n bigint NOT NULL
);
INSERT INTO core_generation (n) VALUES (1);

CREATE FUNCTION core_configuration_changed() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    -- The row's lock keeps the order: who sees number n sees every change up to n.
    UPDATE core_generation SET n = n + 1;
    PERFORM pg_notify('countersign_changed', '');
END;
$$;

-- For tables that have no model of their own, such as many-to-many ones.
CREATE FUNCTION core_configuration_trigger() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM core_configuration_changed();
    RETURN NULL;
END;
$$;

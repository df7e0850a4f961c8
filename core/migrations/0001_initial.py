from django.db import migrations

CREATE = """
CREATE TABLE core_generation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    n bigint NOT NULL
);
INSERT INTO core_generation (n) VALUES (1);

CREATE FUNCTION core_configuration_changed() RETURNS void AS $$
BEGIN
    -- The row's lock keeps the order: who sees number n sees every change up to n.
    UPDATE core_generation SET n = n + 1;
    PERFORM pg_notify('countersign_changed', '');
END;
$$ LANGUAGE plpgsql;

-- For tables that have no model of their own, such as many-to-many ones.
CREATE FUNCTION core_configuration_trigger() RETURNS trigger AS $$
BEGIN
    PERFORM core_configuration_changed();
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
"""

DROP = "DROP FUNCTION core_configuration_trigger(); DROP FUNCTION core_configuration_changed(); DROP TABLE core_generation;"


class Migration(migrations.Migration):
    """The number that grows with every change of configuration."""

    dependencies: list = []
    operations = [migrations.RunSQL(CREATE, DROP)]

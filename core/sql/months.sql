-- Tables whose rows stand in months, by the UUIDv7 that is their key. docs/en/contributing/record-design.md says
-- which, and why. Everything here goes for each partitioned table of the schema.

-- Below every id of that moment and later.
CREATE OR REPLACE FUNCTION core_first_id(moment timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT rpad(lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0'), 32, '0')
        ::uuid
$$;

CREATE OR REPLACE FUNCTION core_id_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
$$;

-- Where the months of a table end that were made so far.
CREATE OR REPLACE FUNCTION core_months_end(parent regclass) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT max(core_id_time(
        substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([0-9a-f-]{36})''\)')::uuid))
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = parent
$$;

-- Rights and statement triggers are not inherited: whoever could reach a partition past its table
-- would pass its guards. Each has the triggers of its table, and nobody has any right on it.
CREATE OR REPLACE FUNCTION core_guard_partition(parent regclass, part regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT t.tgname FROM pg_trigger t
        WHERE t.tgrelid = part AND NOT t.tgisinternal AND t.tgtype & 1 = 0
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', one.tgname, part);
    END LOOP;
    FOR one IN
        SELECT pg_get_triggerdef(t.oid) AS made FROM pg_trigger t
        WHERE t.tgrelid = parent AND NOT t.tgisinternal AND t.tgtype & 1 = 0
    LOOP
        EXECUTE regexp_replace(one.made, ' ON public\.\w+ ', format(' ON public.%I ',
            (SELECT relname FROM pg_class WHERE oid = part)));
    END LOOP;
    FOR one IN
        SELECT DISTINCT a.grantee FROM pg_class c
        CROSS JOIN LATERAL (
            SELECT r.grantee FROM aclexplode(c.relacl) r
            UNION ALL
            SELECT r.grantee FROM pg_attribute t CROSS JOIN aclexplode(t.attacl) r
            WHERE t.attrelid = c.oid
        ) a
        WHERE c.oid = part AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', part,
            CASE WHEN one.grantee = 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION core_guard_partitions() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT core_guard_partition(i.inhparent, i.inhrelid) FROM pg_inherits i
    JOIN pg_partitioned_table p ON p.partrelid = i.inhparent
    JOIN pg_class c ON c.oid = i.inhparent AND c.relnamespace = 'public'::regnamespace
$$;

CREATE OR REPLACE FUNCTION core_make_partition(parent regclass, name text, bounds text)
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    -- Attached when it is complete: that locks nobody out who writes into other months.
    EXECUTE format('CREATE TABLE public.%I (LIKE %s INCLUDING ALL)', name, parent);
    PERFORM core_guard_partition(parent, format('public.%I', name)::regclass);
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION public.%I %s', parent, name, bounds);
END $$;

CREATE OR REPLACE FUNCTION core_bounds(low timestamptz, high timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT format('FOR VALUES FROM (%L) TO (%L)', core_first_id(low), core_first_id(high))
$$;

-- This month's partition and those of the next ones, as far as they are missing; returns the names
-- of the new ones. It may be called by who owns nothing, and does nothing that it did before.
CREATE OR REPLACE FUNCTION core_make_months(ahead int DEFAULT 3) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET timezone = 'UTC' SET lock_timeout = '500ms' AS $$
DECLARE
    wanted CONSTANT timestamptz :=
        date_trunc('month', clock_timestamp()) + make_interval(months => least(ahead, 12) + 1);
    parent regclass;
    key text;
    later text;
    is_used boolean;
    last uuid;
    low timestamptz;
    high timestamptz;
    name text;
BEGIN
    PERFORM pg_advisory_xact_lock(71003, 0);
    FOR parent, key IN
        SELECT p.partrelid, a.attname FROM pg_partitioned_table p
        JOIN pg_class c ON c.oid = p.partrelid AND c.relnamespace = 'public'::regnamespace
        JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
        ORDER BY c.relname
    LOOP
        later := parent::text || '_later';
        low := core_months_end(parent);
        -- A month that nobody made in time: what took its rows becomes it, and moves none. Ids of a
        -- clock that is far ahead stay where they are.
        EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE %I < $1)', later, key)
            INTO is_used USING core_first_id(wanted);
        IF is_used THEN
            EXECUTE format('SELECT %I FROM %I ORDER BY 1 DESC LIMIT 1', key, later) INTO last;
            high := date_trunc('month', core_id_time(last)) + interval '1 month';
            name := format('%s_%s', parent, to_char(low, 'YYYY_MM'));
            EXECUTE format('ALTER TABLE %s DETACH PARTITION %I', parent, later);
            EXECUTE format('ALTER TABLE %I RENAME TO %I', later, name);
            EXECUTE format('ALTER TABLE %s ATTACH PARTITION %I %s',
                parent, name, core_bounds(low, high));
            PERFORM core_make_partition(parent, later, 'DEFAULT');
            RETURN NEXT name;
            low := high;
        END IF;
        WHILE low < wanted LOOP
            high := low + interval '1 month';
            name := format('%s_%s', parent, to_char(low, 'YYYY_MM'));
            PERFORM core_make_partition(parent, name, core_bounds(low, high));
            RETURN NEXT name;
            low := high;
        END LOOP;
    END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION core_make_months FROM PUBLIC;

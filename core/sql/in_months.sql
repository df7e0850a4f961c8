-- The rows of TABLE_NAME stand in months of KEY_NAME from now on. The table that has them becomes the
-- first partition, with its indexes, until the end of this month: no row moves.
DO $$
DECLARE
    one record;
    last uuid;
    next timestamptz;
BEGIN
    SET LOCAL timezone = 'UTC';
    EXECUTE 'SELECT KEY_NAME FROM TABLE_NAME ORDER BY 1 DESC LIMIT 1' INTO last;
    next := date_trunc('month', greatest(clock_timestamp(), core_id_time(last)))
        + interval '1 month';

    ALTER TABLE TABLE_NAME RENAME TO TABLE_NAME_first;
    CREATE TABLE TABLE_NAME (LIKE TABLE_NAME_first INCLUDING ALL EXCLUDING INDEXES)
        PARTITION BY RANGE (KEY_NAME);
    FOR one IN
        SELECT c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'TABLE_NAME_first'::regclass
    LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', one.name, one.name || '_first');
    END LOOP;
    FOR one IN
        SELECT left(c.relname, -length('_first')) AS name, pg_get_indexdef(c.oid) AS made,
            i.indisprimary AS is_key
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'TABLE_NAME_first'::regclass
    LOOP
        EXECUTE CASE WHEN one.is_key
            THEN format('ALTER TABLE TABLE_NAME ADD CONSTRAINT %I PRIMARY KEY (KEY_NAME)', one.name)
            ELSE replace(one.made, one.name || '_first ON public.TABLE_NAME_first ',
                one.name || ' ON public.TABLE_NAME ') END;
    END LOOP;
    FOR one IN
        SELECT tgname AS name, pg_get_triggerdef(oid) AS made, tgtype & 1 = 1 AS is_of_rows,
            obj_description(oid, 'pg_trigger') AS comment
        FROM pg_trigger WHERE tgrelid = 'TABLE_NAME_first'::regclass AND NOT tgisinternal
    LOOP
        EXECUTE replace(one.made, ' ON public.TABLE_NAME_first ', ' ON public.TABLE_NAME ');
        EXECUTE format('COMMENT ON TRIGGER %I ON TABLE_NAME IS %L', one.name, one.comment);
        -- Those of rows are inherited.
        IF one.is_of_rows THEN
            EXECUTE format('DROP TRIGGER %I ON TABLE_NAME_first', one.name);
        END IF;
    END LOOP;
    EXECUTE format(
        'ALTER TABLE TABLE_NAME ATTACH PARTITION TABLE_NAME_first FOR VALUES FROM (MINVALUE) TO (%L)',
        core_first_id(next));
    PERFORM core_make_partition('TABLE_NAME', 'TABLE_NAME_later', 'DEFAULT');
    PERFORM core_guard_partitions();
    PERFORM core_make_months();
END $$;

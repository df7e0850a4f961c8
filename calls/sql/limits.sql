-- What calls reserve of exact limits in the commit that opens them: budgets, calls at the same time,
-- and loop breakers, which look at how the calls before ended.

-- Locks counters in one order, whoever comes, so that two processes never wait for each other; then
-- brings them up to date with what the record says of the calls that reserved.
CREATE OR REPLACE FUNCTION calls_settle_limit(counter bigint, kind text, period text, most numeric,
    hold_s float)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    found record;
    one record;
    began timestamptz;
    -- The limit, where results say what calls cost.
    by_result bigint;
    cost numeric;
BEGIN
    SELECT * INTO found FROM policies_limitcounter c WHERE c.id = counter;
    IF kind = 'cost' THEN
        SELECT l.id INTO by_result FROM policies_limit l
        WHERE l.id = found.limit_id AND l.cost_result <> '';
        began := date_trunc(period, clock_timestamp(), 'UTC');
        IF found.since IS DISTINCT FROM began THEN
            -- Never back: a clock that was put back must not make money free again.
            IF found.since IS NULL OR found.since < began THEN
                -- A pending call stays known: its cost may be edited, and is counted here then. So
                -- does one whose result may still say its cost.
                DELETE FROM policies_limituse u WHERE u.counter_id = counter AND NOT EXISTS (
                    SELECT FROM calls_call c WHERE c.id = u.call_id AND (c.state = 'held'
                        OR (by_result IS NOT NULL
                            AND c.state IN ('approved', 'queued', 'running'))));
                UPDATE policies_limituse u SET amount = 0 WHERE u.counter_id = counter;
                UPDATE policies_limitcounter c SET since = began, spent = 0 WHERE c.id = counter;
            END IF;
        END IF;
    END IF;
    FOR one IN
        SELECT u.id, u.call_id, u.amount, c.state, c.executed, c.finished_at
        FROM policies_limituse u LEFT JOIN calls_call c ON c.id = u.call_id
        WHERE u.counter_id = counter ORDER BY c.finished_at, u.id
    LOOP
        CASE kind
        WHEN 'cost' THEN
            -- One that may have been executed keeps what it reserved; people may find out.
            CONTINUE WHEN one.state IN ('held', 'approved', 'queued', 'running', 'unknown');
            -- No such call: nothing was opened.
            IF one.state IS NULL OR one.executed = 'no' THEN
                UPDATE policies_limitcounter c SET spent = GREATEST(c.spent - one.amount, 0)
                WHERE c.id = counter;
            ELSIF by_result IS NOT NULL THEN
                SELECT (e.details -> 'costs' ->> by_result::text)::numeric INTO cost
                FROM audit_entry e WHERE e.call_id = one.call_id AND e.from_state = 'running'
                    AND e.details ? 'costs'
                ORDER BY e.id DESC LIMIT 1;
                -- What the result does not say stays as it was reserved.
                UPDATE policies_limitcounter c SET spent = LEAST(
                    GREATEST(c.spent + cost - one.amount, 0), 99999999999999999999)
                WHERE c.id = counter AND cost IS NOT NULL;
            END IF;
        WHEN 'concurrency' THEN
            CONTINUE WHEN one.state IN ('approved', 'queued', 'running');
            UPDATE policies_limitcounter c SET spent = GREATEST(c.spent - one.amount, 0)
            WHERE c.id = counter;
        WHEN 'failures' THEN
            CONTINUE WHEN one.state IN ('held', 'approved', 'queued', 'running');
            IF one.state IN ('tool_error', 'failed', 'timed_out', 'unknown') THEN
                UPDATE policies_limitcounter c SET spent = c.spent + 1 WHERE c.id = counter;
                UPDATE policies_limitcounter c SET
                    spent = 0, until = one.finished_at + make_interval(secs => hold_s)
                WHERE c.id = counter AND c.spent >= most;
            ELSIF one.state = 'succeeded' THEN
                UPDATE policies_limitcounter c SET spent = 0 WHERE c.id = counter;
            END IF;
        ELSE
            CONTINUE WHEN one.state IN ('held', 'approved', 'queued', 'running');
        END CASE;
        DELETE FROM policies_limituse u WHERE u.id = one.id;
    END LOOP;
END $$;

-- All that a call needs, or nothing. Of each line: whether it may be opened, and the limits that it
-- is too much for: those in its way, and those that only watch or that people answer for.
CREATE OR REPLACE FUNCTION calls_reserve(lines json)
RETURNS TABLE (id uuid, is_reserved boolean, over json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    line record;
    used record;
    counter record;
    is_over boolean;
    wait_s float;
    found json[];
BEGIN
    INSERT INTO policies_limitcounter (limit_id, key, label, agent_id, person_id)
    SELECT DISTINCT ON (u.limit_id, u.key)
        u.limit_id, u.key, left(u.label, 500), u.agent_id, u.person_id
    FROM json_to_recordset(lines) AS l(uses json), json_to_recordset(l.uses) AS u(
        limit_id bigint, key text, label text, agent_id bigint, person_id bigint)
    ORDER BY u.limit_id, u.key
    ON CONFLICT (limit_id, key) DO NOTHING;
    FOR used IN
        SELECT DISTINCT ON (u.limit_id, u.key) u.*
        FROM json_to_recordset(lines) AS l(uses json), json_to_recordset(l.uses) AS u(
            limit_id bigint, key text, label text, agent_id bigint, person_id bigint, kind text,
            period text, most numeric, hold_s float)
        ORDER BY u.limit_id, u.key
    LOOP
        LOOP
            SELECT c.id INTO counter FROM policies_limitcounter c
            WHERE c.limit_id = used.limit_id AND c.key = used.key FOR UPDATE;
            EXIT WHEN counter.id IS NOT NULL;
            -- Somebody removed it while this waited for its lock.
            INSERT INTO policies_limitcounter (limit_id, key, label, agent_id, person_id)
            VALUES (used.limit_id, used.key, left(used.label, 500), used.agent_id, used.person_id)
            ON CONFLICT (limit_id, key) DO NOTHING;
        END LOOP;
        PERFORM calls_settle_limit(counter.id, used.kind, used.period, used.most, used.hold_s);
    END LOOP;

    FOR line IN
        SELECT l.* FROM json_to_recordset(lines) AS l(id uuid, once text, uses json)
    LOOP
        id := line.id;
        found := '{}';
        is_reserved := true;
        over := '[]';
        -- A line may come twice when the first commit's fate was unknown.
        IF calls_exists(line.id) THEN
            RETURN NEXT;
            CONTINUE;
        END IF;
        -- Its key is another call's: it is not opened.
        IF line.once IS NOT NULL AND (
            SELECT k.call_id = line.id FROM calls_once k WHERE k.id = line.once) IS NOT TRUE
        THEN
            is_reserved := false;
            RETURN NEXT;
            CONTINUE;
        END IF;
        FOR used IN
            SELECT u.* FROM json_to_recordset(line.uses) AS u(
                limit_id bigint, key text, kind text, period text, most numeric, amount numeric,
                forced boolean)
        LOOP
            SELECT * INTO counter FROM policies_limitcounter c
            WHERE c.limit_id = used.limit_id AND c.key = used.key;
            wait_s := NULL;
            IF used.kind IN ('repeats', 'failures') THEN
                is_over := counter.until > clock_timestamp();
                wait_s := extract(epoch FROM counter.until - clock_timestamp());
            ELSE
                is_over := counter.spent + used.amount > used.most
                    AND NOT EXISTS (SELECT FROM policies_limituse x
                        WHERE x.counter_id = counter.id AND x.call_id = line.id);
                IF used.kind = 'cost' AND used.amount <= used.most THEN
                    wait_s := extract(epoch FROM (
                        date_trunc(used.period, counter.since, 'UTC') AT TIME ZONE 'UTC'
                        + ('1 ' || used.period)::interval) AT TIME ZONE 'UTC' - clock_timestamp());
                END IF;
            END IF;
            IF is_over THEN
                found := found || json_build_object('limit', used.limit_id, 'wait_s', wait_s,
                    'forced', used.forced);
                is_reserved := is_reserved AND used.forced;
            END IF;
        END LOOP;
        over := array_to_json(found);
        IF is_reserved THEN
            PERFORM calls_use_limits(line.id, line.uses);
        ELSE
            -- Its key stands for no call: whoever comes again with it is looked at anew.
            DELETE FROM calls_once k WHERE k.id = line.once AND k.call_id = line.id;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION calls_use_limits(call uuid, uses json)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    used record;
    counter record;
BEGIN
    FOR used IN
        SELECT u.* FROM json_to_recordset(uses) AS u(
            limit_id bigint, key text, label text, kind text, most numeric, amount numeric,
            hold_s float, alike text)
    LOOP
        SELECT * INTO counter FROM policies_limitcounter c
        WHERE c.limit_id = used.limit_id AND c.key = used.key;
        INSERT INTO policies_limituse (counter_id, call_id, amount)
        VALUES (counter.id, call, used.amount)
        ON CONFLICT (call_id, counter_id) DO NOTHING;
        CONTINUE WHEN NOT FOUND;
        UPDATE policies_limitcounter c SET
            label = left(used.label, 500),
            spent = CASE
                WHEN used.kind = 'failures' THEN c.spent
                -- As far as the column goes: what is far beyond a limit stays countable.
                WHEN used.kind <> 'repeats'
                THEN LEAST(c.spent + used.amount, 99999999999999999999)
                WHEN c.last <> used.alike THEN 1
                WHEN c.spent + 1 >= used.most THEN 0
                ELSE c.spent + 1 END,
            last = CASE WHEN used.kind = 'repeats' THEN used.alike ELSE c.last END,
            until = CASE
                WHEN used.kind = 'repeats' AND
                     CASE WHEN c.last = used.alike THEN c.spent + 1 ELSE 1 END >= used.most
                THEN clock_timestamp() + make_interval(secs => used.hold_s)
                ELSE c.until END
        WHERE c.id = counter.id;
    END LOOP;
END $$;

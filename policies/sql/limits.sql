-- Shares of a rate: gateways take several at once and spend them without asking again.

-- As much of a limit's rate as is wanted and left, at fewest `fewest` or nothing (GCRA: the theoretical
-- arrival time of the next use moves on with each). `wait_s`: when `fewest` will be left; NULL: never.
-- `ahead_s`: how far ahead the count was before.
CREATE OR REPLACE FUNCTION policies_lease(
    which bigint, counted text, shown text, agent bigint, person bigint,
    wanted float, fewest float, emission_s float, burst float,
    OUT granted float, OUT wait_s float, OUT ahead_s float)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    was timestamptz;
    moment timestamptz;
    free float;
BEGIN
    granted := 0;
    wait_s := NULL;
    ahead_s := 0;
    IF fewest > burst THEN
        RETURN;
    END IF;
    INSERT INTO policies_limitcounter (limit_id, key, label, agent_id, person_id)
    VALUES (which, counted, left(shown, 500), agent, person)
    ON CONFLICT (limit_id, key) DO NOTHING;
    SELECT c.tat INTO was FROM policies_limitcounter c
    WHERE c.limit_id = which AND c.key = counted FOR UPDATE;
    -- After the row is ours: whoever waited for it is later.
    moment := clock_timestamp();
    ahead_s := GREATEST(extract(epoch FROM was - moment)::float, 0.0);
    IF was IS NULL THEN
        ahead_s := 0.0;
    END IF;
    -- No more than all of it can be used: its burst was lowered, or the clock was put back.
    IF ahead_s > burst * emission_s THEN
        ahead_s := burst * emission_s;
        UPDATE policies_limitcounter c SET tat = moment + make_interval(secs => ahead_s)
        WHERE c.limit_id = which AND c.key = counted;
    END IF;
    -- A millionth more, or what is exactly one would now and then be a little less.
    free := burst - ahead_s / emission_s + 1e-6;
    IF free < fewest THEN
        wait_s := (fewest - free) * emission_s;
        RETURN;
    END IF;
    granted := LEAST(GREATEST(wanted, fewest), floor(free));
    wait_s := 0;
    UPDATE policies_limitcounter c SET
        tat = moment + make_interval(secs => ahead_s + granted * emission_s),
        label = left(shown, 500)
    WHERE c.limit_id = which AND c.key = counted;
END $$;

-- What a call took that was then refused: so many seconds of the count.
CREATE OR REPLACE FUNCTION policies_return(which bigint, counted text, back_s float)
RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE policies_limitcounter c SET tat = c.tat - make_interval(secs => back_s)
    WHERE c.limit_id = which AND c.key = counted;
$$;

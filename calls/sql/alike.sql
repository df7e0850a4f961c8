-- Whether the same was asked before. As functions, because calls stand in many partitions: what
-- looks through all of them is made ready only for a call that needs it.

CREATE OR REPLACE FUNCTION calls_exists(call uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM calls_call c WHERE c.id = call);
END $$;

-- The one that waits for people. One asks at a time: no unique index knows calls of two months.
CREATE OR REPLACE FUNCTION calls_held_alike(agent bigint, tool bigint, digest text) RETURNS uuid
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(format('held %s %s %s', agent, tool, digest), 0));
    RETURN (
        SELECT p.id FROM calls_call p
        WHERE p.agent_id = agent AND p.tool_id = tool AND p.arguments_digest = digest
          AND p.state = 'held' LIMIT 1);
END $$;

-- Entries as people and programs read and write them: with names, digests in hex, and details in
-- one piece; what was forgotten says so and nothing else. The rows are `audit_entryrow`; the agents'
-- path writes those (calls/record).

CREATE OR REPLACE VIEW audit_entry WITH (security_invoker = true) AS
SELECT
    r.id, r.at, r.transaction, r.format, r.salt, COALESCE(action.text, '') AS action,
    -- Where nobody else is named, the agent did it itself.
    actor.kind AS actor_kind, actor.subject AS actor_id,
    CASE WHEN actor.salt IS NULL AND actor.id IS NOT NULL THEN '(forgotten)'
        ELSE COALESCE(actor.text, '') END AS actor,
    r.call_id, r.seq, r.from_state, r.to_state,
    agent.subject AS agent_id,
    CASE WHEN agent.salt IS NULL AND agent.id IS NOT NULL THEN '(forgotten)'
        ELSE COALESCE(agent.text, '') END AS agent,
    person.subject AS person_id,
    CASE WHEN person.salt IS NULL AND person.id IS NOT NULL THEN '(forgotten)'
        ELSE COALESCE(person.text, '') END AS person,
    COALESCE(tool.server, '') AS server, COALESCE(tool.text, '') AS tool,
    COALESCE(tool.definition, '') AS definition_digest,
    COALESCE(encode(r.arguments, 'hex'), '') AS arguments_digest,
    COALESCE(encode(r.result, 'hex'), '') AS result_digest,
    CASE WHEN reason.salt IS NULL AND reason.id IS NOT NULL THEN '(forgotten)'
        ELSE COALESCE(reason.text, '') END AS reason,
    COALESCE(context.text::jsonb, '{}') || CASE WHEN r.salt IS NULL
        THEN '{"forgotten": true}' ELSE COALESCE(r.details, '{}') END AS details
FROM audit_entryrow r
LEFT JOIN audit_name action ON action.id = r.action
LEFT JOIN audit_name actor ON actor.id = COALESCE(r.actor, r.agent)
LEFT JOIN audit_name agent ON agent.id = r.agent
LEFT JOIN audit_name person ON person.id = r.person
LEFT JOIN audit_name tool ON tool.id = r.tool
LEFT JOIN audit_name context ON context.id = r.context
LEFT JOIN audit_name reason ON reason.id = r.reason;

CREATE OR REPLACE FUNCTION audit_insert_entry()
RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    own jsonb := COALESCE(NEW.details, '{}');
    shared jsonb;
BEGIN
    IF own ?| ARRAY['effect', 'rule'] THEN
        -- What entries are filtered by, and many have in common, stands once.
        SELECT jsonb_object_agg(key, value) INTO shared FROM jsonb_each(own)
        WHERE key IN ('effect', 'rule', 'origin', 'revision', 'toolset');
        own := own - ARRAY['effect', 'rule', 'origin', 'revision', 'toolset'];
    END IF;
    INSERT INTO audit_entryrow (
        action, actor, agent, person, tool, context, reason, call_id, seq, from_state, to_state,
        arguments, result, details)
    VALUES (
        audit_name_number('action', NULL, NEW.action),
        audit_name_number(NEW.actor_kind, NEW.actor_id, COALESCE(NEW.actor, '')),
        CASE WHEN NEW.agent_id IS NOT NULL OR NEW.agent <> ''
            THEN audit_name_number('agent', NEW.agent_id, COALESCE(NEW.agent, '')) END,
        CASE WHEN NEW.person_id IS NOT NULL OR NEW.person <> ''
            THEN audit_name_number('person', NEW.person_id, COALESCE(NEW.person, '')) END,
        CASE WHEN NEW.server <> '' OR NEW.tool <> '' OR NEW.definition_digest <> ''
            THEN audit_name_number('tool', NULL, COALESCE(NEW.tool, ''), COALESCE(NEW.server, ''),
                COALESCE(NEW.definition_digest, '')) END,
        CASE WHEN shared IS NOT NULL THEN audit_name_number('context', NULL, shared::text) END,
        CASE WHEN NEW.reason <> '' THEN audit_name_number('reason', NULL, NEW.reason) END,
        NEW.call_id, NEW.seq, COALESCE(NEW.from_state, ''), COALESCE(NEW.to_state, ''),
        decode(NULLIF(NEW.arguments_digest, ''), 'hex'),
        decode(NULLIF(NEW.result_digest, ''), 'hex'),
        NULLIF(own, '{}'))
    RETURNING id, at, transaction INTO NEW.id, NEW.at, NEW.transaction;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER audit_insert_entry INSTEAD OF INSERT ON audit_entry
FOR EACH ROW EXECUTE FUNCTION audit_insert_entry();

-- The first entry of a moment or later, as ids go: they follow the clock, but for transactions that
-- took their time (audit/finding.py knows how long). NULL when all are earlier.
CREATE OR REPLACE FUNCTION audit_first_id(moment timestamptz)
RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    low bigint := (SELECT min(id) FROM audit_entryrow);
    high bigint := (SELECT max(id) FROM audit_entryrow);
    last bigint := high;
    middle bigint;
    found record;
BEGIN
    IF moment IS NULL THEN
        RETURN NULL;
    END IF;
    WHILE low <= high LOOP
        middle := (low + high) / 2;
        SELECT id, at INTO found FROM audit_entryrow WHERE id >= middle ORDER BY id LIMIT 1;
        IF found.at < moment THEN
            low := found.id + 1;
        ELSE
            high := middle - 1;
        END IF;
    END LOOP;
    RETURN (SELECT id FROM audit_entryrow WHERE id BETWEEN low AND last ORDER BY id LIMIT 1);
END $$;

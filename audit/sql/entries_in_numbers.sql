-- Entries that were stored in words, in numbers. They stay entries of format 1: the words are what
-- their leaves were computed from.

CREATE UNLOGGED TABLE audit_words AS
SELECT e.*,
    CASE WHEN details ?| ARRAY['effect', 'rule'] THEN (
        SELECT jsonb_object_agg(key, value)::text FROM jsonb_each(details)
        WHERE key IN ('effect', 'rule', 'origin', 'revision', 'toolset')
    ) END AS context,
    CASE WHEN details ?| ARRAY['effect', 'rule']
        THEN details - ARRAY['effect', 'rule', 'origin', 'revision', 'toolset'] ELSE details
    END AS own
FROM audit_entry_1 e;

INSERT INTO audit_name (kind, subject, text, server, definition, salt, commitment)
SELECT kind, subject, name, server, definition, fresh.salt,
    audit_commitment(fresh.salt, kind, subject, name, server, definition)
FROM (
    SELECT 'action' AS kind, NULL::bigint AS subject, action AS name, '' AS server, '' AS definition
    FROM audit_words
    UNION SELECT actor_kind, actor_id, actor, '', '' FROM audit_words
    UNION SELECT 'agent', agent_id, agent, '', '' FROM audit_words
        WHERE agent_id IS NOT NULL OR agent <> ''
    UNION SELECT 'person', person_id, person, '', '' FROM audit_words
        WHERE person_id IS NOT NULL OR person <> ''
    UNION SELECT 'tool', NULL, tool, server, definition_digest FROM audit_words
        WHERE server <> '' OR tool <> '' OR definition_digest <> ''
    UNION SELECT 'context', NULL, context, '', '' FROM audit_words WHERE context IS NOT NULL
    UNION SELECT 'reason', NULL, reason, '', '' FROM audit_words WHERE reason <> ''
    EXCEPT SELECT kind, subject, text, server, definition FROM audit_name
) used
CROSS JOIN LATERAL (SELECT uuid_send(gen_random_uuid()) AS salt WHERE used.name IS NOT NULL) fresh;

ANALYZE audit_name;

INSERT INTO audit_entryrow (
    id, at, transaction, format, salt, call_id, seq, from_state, to_state, action, actor, agent,
    person, tool, context, reason, arguments, result, details)
SELECT
    e.id, e.at, e.transaction, 1, e.salt, e.call_id, e.seq, e.from_state, e.to_state, action.id,
    actor.id, agent.id, person.id, tool.id, context.id, reason.id,
    decode(NULLIF(e.arguments_digest, ''), 'hex'), decode(NULLIF(e.result_digest, ''), 'hex'),
    NULLIF(e.own, '{}')
FROM audit_words e
JOIN audit_name action ON action.kind = 'action' AND action.text = e.action
JOIN audit_name actor ON actor.kind = e.actor_kind AND actor.text = e.actor
    AND actor.subject IS NOT DISTINCT FROM e.actor_id
LEFT JOIN audit_name agent ON agent.kind = 'agent' AND agent.text = e.agent
    AND agent.subject IS NOT DISTINCT FROM e.agent_id
LEFT JOIN audit_name person ON person.kind = 'person' AND person.text = e.person
    AND person.subject IS NOT DISTINCT FROM e.person_id
LEFT JOIN audit_name tool ON tool.kind = 'tool' AND tool.text = e.tool
    AND tool.server = e.server AND tool.definition = e.definition_digest
LEFT JOIN audit_name context ON context.kind = 'context' AND context.text = e.context
LEFT JOIN audit_name reason ON reason.kind = 'reason' AND reason.text = e.reason;

-- Ids go on where they were, given out in vain or not.
SELECT setval(pg_get_serial_sequence('audit_entryrow', 'id'), last_value) FROM pg_sequences
WHERE format('%I.%I', schemaname, sequencename)::regclass
    = pg_get_serial_sequence('audit_entry_1', 'id')::regclass AND last_value IS NOT NULL;

DO $$ BEGIN
    IF (SELECT count(*) FROM audit_entryrow) <> (SELECT count(*) FROM audit_entry_1) THEN
        RAISE EXCEPTION 'entries were lost on the way to numbers: nothing was changed';
    END IF;
END $$;
DROP TABLE audit_entry_1, audit_words;
DROP FUNCTION pgtrigger_no_update_0bb6f, pgtrigger_no_delete_54e9b, pgtrigger_no_truncate_32091;

-- Numbers that indexes and audit/models/entries.py know.

INSERT INTO audit_name (id, kind, subject, text, salt, commitment)
SELECT first.id, kind, NULL, name, fresh.salt,
    audit_commitment(fresh.salt, kind, NULL, name, '', '')
FROM (VALUES
    (1, 'action', 'call.running'), (2, 'action', 'call.succeeded'),
    (3, 'system', 'countersign'), (4, 'policy', 'policy')
) AS first (id, kind, name)
CROSS JOIN LATERAL (SELECT uuid_send(gen_random_uuid()) AS salt WHERE first.id > 0) fresh;
ALTER TABLE audit_name ALTER id RESTART WITH 100;

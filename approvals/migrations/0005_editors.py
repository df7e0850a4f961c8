"""Whoever edited a call's arguments last has no vote on it."""

from django.db import migrations

EXCLUDED = """
CREATE OR REPLACE FUNCTION approvals_excluded(call uuid)
RETURNS TABLE (person_id bigint, why text) LANGUAGE sql STABLE AS $$
    SELECT c.person_id, 'person' FROM calls_call c WHERE c.id = call
    UNION ALL
    SELECT a.owner_id, 'owner' FROM calls_call c JOIN accounts_agent a ON a.id = c.agent_id
    WHERE c.id = call
    UNION ALL
    SELECT m.person_id, 'editor' FROM calls_call c JOIN calls_amendment m ON m.id = c.amendment_id
    WHERE c.id = call
$$
"""
BEFORE = """
CREATE OR REPLACE FUNCTION approvals_excluded(call uuid)
RETURNS TABLE (person_id bigint, why text) LANGUAGE sql STABLE AS $$
    SELECT c.person_id, 'person' FROM calls_call c WHERE c.id = call
    UNION ALL
    SELECT a.owner_id, 'owner' FROM calls_call c JOIN accounts_agent a ON a.id = c.agent_id
    WHERE c.id = call
$$
"""


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0004_counting_votes"),
        ("calls", "0006_amendments"),
    ]

    operations = [migrations.RunSQL(EXCLUDED, BEFORE)]

"""Of the clauses of thresholds, one from each rule that asks, every one has to be met."""

from django.db import migrations

from core.triggers import SEARCH_PATH

# 'approved', 'denied' or '': a no that is met wins.
DECIDED = f"""
CREATE OR REPLACE FUNCTION approvals_decided(call uuid, thresholds jsonb)
RETURNS text LANGUAGE sql STABLE SET search_path = {SEARCH_PATH} AS $$
    WITH met AS (
        SELECT COALESCE((t.t ->> 'clause')::int, 0) AS clause,
               count(c.vote_id) FILTER (WHERE c.approve) >= (t.t ->> 'approve')::int AS yes,
               count(c.vote_id) FILTER (WHERE NOT c.approve) >= (t.t ->> 'deny')::int AS no
        FROM jsonb_array_elements(thresholds) WITH ORDINALITY AS t (t, place)
        LEFT JOIN approvals_counted(call, thresholds) c ON c.place = t.place
        GROUP BY t.t, t.place
    ), clauses AS (
        SELECT bool_or(yes) AS yes, bool_or(no) AS no FROM met GROUP BY clause
    )
    SELECT CASE WHEN bool_or(no) THEN 'denied' WHEN bool_and(yes) THEN 'approved' ELSE '' END
    FROM clauses
$$
"""
BEFORE = f"""
CREATE OR REPLACE FUNCTION approvals_decided(call uuid, thresholds jsonb)
RETURNS text LANGUAGE sql STABLE SET search_path = {SEARCH_PATH} AS $$
    WITH met AS (
        SELECT count(c.vote_id) FILTER (WHERE c.approve) >= (t.t ->> 'approve')::int AS yes,
               count(c.vote_id) FILTER (WHERE NOT c.approve) >= (t.t ->> 'deny')::int AS no
        FROM jsonb_array_elements(thresholds) WITH ORDINALITY AS t (t, place)
        LEFT JOIN approvals_counted(call, thresholds) c ON c.place = t.place
        GROUP BY t.t, t.place
    )
    SELECT CASE WHEN bool_or(no) THEN 'denied' WHEN bool_or(yes) THEN 'approved' ELSE '' END
    FROM met
$$
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_search_paths")]

    operations = [migrations.RunSQL(DECIDED, BEFORE)]

-- Which checkpoints may go: one an hour stays for a month, and one a day for good, the last of each;
-- whatever is younger than a day; both sides of a moment at which the clock was set back, by which
-- verification knows of it; and those of a size at which another key or origin began.
CREATE OR REPLACE FUNCTION audit_may_thin(
    signed_size bigint, signed_at timestamptz, before timestamptz, after timestamptz)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT signed_at < clock_timestamp() - interval '1 day'
        AND COALESCE(before <= signed_at, true)
        AND COALESCE(signed_at <= after, false)
        AND date_trunc(unit, signed_at, 'UTC') = date_trunc(unit, after, 'UTC')
        AND NOT EXISTS (SELECT FROM audit_signer WHERE first_size = signed_size)
        AND NOT EXISTS (SELECT FROM audit_origin WHERE kept = signed_size AND number > 1)
    FROM (SELECT CASE WHEN signed_at < clock_timestamp() - interval '1 month'
        THEN 'day' ELSE 'hour' END AS unit) u
$$;

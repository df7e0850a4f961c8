"""A rule that names a person means them by every name that they have or had: no name is used twice."""

from django.db import migrations

from core.triggers import SEARCH_PATH

HEAD = f"""
CREATE OR REPLACE FUNCTION approvals_is_from(person bigint, source text)
RETURNS boolean LANGUAGE sql STABLE SET search_path = {SEARCH_PATH} AS $$
    SELECT CASE
        WHEN source = '' THEN true
        WHEN source LIKE 'group:%' THEN EXISTS (
            SELECT FROM accounts_user_groups ug JOIN auth_group g ON g.id = ug.group_id
            WHERE ug.user_id = person AND g.name = substr(source, 7))
        WHEN source LIKE 'person:%' THEN EXISTS (
            SELECT FROM accounts_user u WHERE u.id = person AND u.username = substr(source, 8))"""
IS_FROM = (
    HEAD
    + """
            OR EXISTS (
            SELECT FROM accounts_usedname n
            WHERE n.person_id = person AND n.name = substr(source, 8))
        ELSE false END
$$
"""
)
BEFORE = (
    HEAD
    + """
        ELSE false END
$$
"""
)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0012_single_person"), ("accounts", "0008_used_names")]

    operations = [migrations.RunSQL(IS_FROM, BEFORE)]

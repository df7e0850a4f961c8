"""Local users of a release that knew no providers, brought to the schema of this one."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.auth.hashers import check_password, make_password

from tests.console.scenery import PASSWORD
from tests.database import Databases, manage

# The last migration before sessions, identities and step-up at a provider.
BEFORE = "0006"
SOMEBODY = """
    INSERT INTO accounts_user (username, password, email, first_name, last_name, is_active,
        is_staff, is_superuser, date_joined, time_zone, language, session_epoch)
    VALUES ('nora', %s, 'nora@example.com', 'Nora', '', true, false, false, now(), 'UTC', '', 0)
    RETURNING id
"""
PASSKEY = """
    INSERT INTO accounts_passkey (person_id, name, credential_id, public_key, rp_id, sign_count,
        synced, created_at)
    VALUES (%s, 'Laptop', 'credential', 'key', 'localhost', 7, false, now())
"""
APP = """
    INSERT INTO accounts_codeapp (person_id, sealed_secret, confirmed_at, last_step, created_at)
    VALUES (%s, 'sealed', now(), 0, now())
"""
PROOF = """
    INSERT INTO accounts_proof (person_id, method, statement, statement_digest, assertion, origin,
        at)
    VALUES (%s, 'totp', 'a statement', %s, '', '', now())
"""
MEMBER = """
    WITH made AS (INSERT INTO auth_group (name) VALUES ('Approver')
        ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name RETURNING id)
    INSERT INTO accounts_user_groups (user_id, group_id) SELECT %s, id FROM made
"""
AFTER = """
    SELECT u.password, u.is_active, u.session_epoch, u.let_in_by_id, g.name, k.name, k.sign_count,
        k.removed_at, a.confirmed_at IS NOT NULL, p.method,
        (SELECT count(*) FROM accounts_identity)
    FROM accounts_user u
    JOIN accounts_user_groups ug ON ug.user_id = u.id JOIN auth_group g ON g.id = ug.group_id
    JOIN accounts_passkey k ON k.person_id = u.id JOIN accounts_codeapp a ON a.person_id = u.id
    JOIN accounts_proof p ON p.person_id = u.id
    WHERE u.username = 'nora'
"""


@pytest.fixture
def upgraded(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    urls = databases.empty()
    try:
        manage(["migrate", "accounts", BEFORE, "--database=owner", "-v0"], env=urls)
        with psycopg.connect(urls["DATABASE_OWNER_URL"]) as link:
            somebody(link)
        manage(["migrate", "--database=owner", "-v0"], env=urls)
        with psycopg.connect(urls["DATABASE_OWNER_URL"]) as link:
            yield link
    finally:
        databases.drop(urls)


def somebody(link: psycopg.Connection[Any]) -> None:
    made = link.execute(SOMEBODY, [make_password(PASSWORD)]).fetchone()
    assert made is not None
    (pk,) = made
    link.execute(PASSKEY, [pk])
    link.execute(APP, [pk])
    link.execute(PROOF, [pk, "0" * 64])
    link.execute(MEMBER, [pk])


@pytest.mark.usefixtures("db")
# Every migration from the first on.
@pytest.mark.long
def test_local_users_keep_what_they_have(upgraded: psycopg.Connection[Any]) -> None:
    found = upgraded.execute(AFTER).fetchone()

    assert found is not None
    password, *rest = found
    assert check_password(PASSWORD, password)
    assert rest == [True, 0, None, "Approver", "Laptop", 7, None, True, "totp", 0]

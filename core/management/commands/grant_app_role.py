"""Gives the application's database role what it needs and no more; run after every migrate."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections
from psycopg import sql

APPEND_ONLY = (
    "audit_entry",
    "audit_leaf",
    "audit_node",
    "audit_checkpoint",
    "registry_definition",
    "approvals_vote",
    "calls_amendment",
    "calls_latereply",
    "calls_logline",
    "calls_link",
    "accounts_proof",
    "approvals_comment",
)
# Of rows that are otherwise never changed.
CHANGING = {"approvals_vote": "fallen_at, fallen_why"}
NEVER_REMOVED = (
    "calls_call",
    "calls_result",
    "calls_freeze",
    "calls_input",
    "approvals_approval",
    "registry_tool",
    "approvals_grant",
)

GRANTS = """
GRANT USAGE ON SCHEMA public TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {role};
REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role};
REVOKE INSERT, DELETE ON core_generation FROM {role};
"""


class Command(BaseCommand):
    help = "Grant the application's database role its rights (as the owner, after migrate)."

    def handle(self, **options: Any) -> None:
        role = str(settings.APP_ROLE)
        with connections["owner"].cursor() as cursor:
            cursor.execute("SELECT current_user")
            row = cursor.fetchone()
            if not role or (row and row[0] == role):
                self.stdout.write("One role owns and uses this database: nothing to grant.")
                return
            cursor.execute(sql.SQL(GRANTS).format(role=sql.Identifier(role)))
            for table in APPEND_ONLY:
                self._revoke(cursor, "UPDATE, DELETE, TRUNCATE", table, role)
            for table, columns in CHANGING.items():
                grant = sql.SQL("GRANT UPDATE ({columns}) ON {table} TO {role}")
                names = {"table": sql.Identifier(table), "role": sql.Identifier(role)}
                cursor.execute(grant.format(columns=sql.SQL(columns), **names))
            for table in NEVER_REMOVED:
                self._revoke(cursor, "DELETE, TRUNCATE", table, role)

    def _revoke(self, cursor: Any, rights: str, table: str, role: str) -> None:
        cursor.execute(
            sql.SQL("REVOKE {rights} ON {table} FROM {role}").format(
                rights=sql.SQL(rights), table=sql.Identifier(table), role=sql.Identifier(role)
            )
        )

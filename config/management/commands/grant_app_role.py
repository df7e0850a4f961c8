"""Gives each database role what it needs and no more; run after every migrate.

docs/en/concepts/security-model.md says what each can do all the same.
"""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections, transaction
from psycopg import sql

from core.triggers import EACH_FUNCTION, SEARCH_PATH

# What the sealer alone writes, each row once.
SEALED = ("audit_tile", "audit_batch", "audit_checkpoint", "audit_signer")
APPEND_ONLY = (
    "audit_entry",
    "audit_entryrow",
    "audit_name",
    *SEALED,
    "audit_origin",
    "audit_rollback",
    "audit_secret",
    "calls_pause",
    "registry_definition",
    "approvals_vote",
    "calls_amendment",
    "calls_latereply",
    "calls_logline",
    "calls_link",
    "accounts_proof",
    "accounts_usedname",
    "approvals_comment",
)
# Of rows that are otherwise never changed.
CHANGING = {"approvals_vote": "fallen_at, fallen_why", "registry_definition": "scan"}
NEVER_REMOVED = (
    "calls_call",
    "calls_result",
    "calls_freeze",
    "calls_input",
    "approvals_approval",
    "registry_tool",
    "approvals_grant",
)

# Of the database itself: not copied with a template, nor restored with a dump. Nobody but the owner
# makes anything that a function could take for one of our tables.
DATABASE_RIGHTS = """
REVOKE TEMPORARY, CREATE ON DATABASE {database} FROM PUBLIC, {role};
REVOKE CREATE ON SCHEMA public FROM PUBLIC, {role};
"""
# What the database fills in: whoever writes an entry cannot give it another place or time, nor a
# salt that somebody knows.
FILLED_IN = ("id", "at", "transaction", "format", "salt")
SEAL_GRANTS = """
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {seal};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {seal};
REVOKE TEMPORARY, CREATE ON DATABASE {database} FROM {seal};
GRANT USAGE ON SCHEMA public TO {seal};
GRANT SELECT ON audit_entryrow, audit_name, audit_origin, audit_rollback TO {seal};
GRANT SELECT, INSERT ON {sealed} TO {seal};
"""
GRANTS = """
GRANT USAGE ON SCHEMA public TO {role};
DO $$
DECLARE
    one regclass;
BEGIN
    -- Partitions only by way of their table.
    FOR one IN
        SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace
        AND relkind IN ('r', 'v', 'm', 'p') AND NOT relispartition
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO {role}', one);
    END LOOP;
END $$;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role};
REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role};
REVOKE INSERT, DELETE ON core_generation FROM {role};
REVOKE INSERT ON audit_origin, audit_secret FROM {role};
"""
# What `manage.py maintain` does: removes results that are past their time, unread, and writes so;
# and checkpoints that a trigger lets go.
MAINTENANCE_GRANTS = """
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {role};
GRANT USAGE ON SCHEMA public TO {role};
GRANT SELECT (call_id, kept_until) ON calls_result TO {role};
GRANT SELECT (call_id), DELETE ON calls_resultpart TO {role};
GRANT SELECT (call_id, kept_until), DELETE ON calls_receivedresult TO {role};
GRANT SELECT, INSERT ON audit_entry, audit_entryrow, audit_name TO {role};
GRANT SELECT, DELETE ON audit_checkpoint TO {role};
GRANT SELECT ON audit_signer, audit_origin TO {role};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role};
GRANT EXECUTE ON FUNCTION core_make_months TO {role};
REVOKE EXECUTE ON FUNCTION core_make_months FROM {app};
"""
# Where it does, nobody else does.
OF_MAINTENANCE = ("calls_resultpart", "calls_receivedresult")


class Command(BaseCommand):
    help = "Grant the application's role and the sealer's their rights (as the owner)."

    def handle(self, **options: Any) -> None:
        role = str(settings.APP_ROLE)
        # At once: between what is granted for all tables and what is taken back again for some,
        # nobody must come in.
        with transaction.atomic(using="owner"), connections["owner"].cursor() as cursor:
            # Migrations know the triggers of tables.
            cursor.execute("SELECT core_guard_partitions()")
            cursor.execute("SELECT current_user")
            row = cursor.fetchone()
            if not role or (row and row[0] == role):
                self.stdout.write("One role owns and uses this database: nothing to grant.")
                return
            database = sql.Identifier(connections["owner"].settings_dict["NAME"])
            names = {"role": sql.Identifier(role), "database": database}
            cursor.execute(sql.SQL(DATABASE_RIGHTS).format(**names))
            cursor.execute(sql.SQL(GRANTS).format(**names))
            path = sql.SQL(SEARCH_PATH)
            cursor.execute(sql.SQL(EACH_FUNCTION).format(search_path=path, **names))
            self._warn_of_temporary_tables(cursor, role)
            for table in APPEND_ONLY:
                self._revoke(cursor, "UPDATE, DELETE, TRUNCATE", table, role)
            for table, columns in CHANGING.items():
                grant = sql.SQL("GRANT UPDATE ({columns}) ON {table} TO {role}")
                cursor.execute(
                    grant.format(
                        columns=sql.SQL(columns),
                        table=sql.Identifier(table),
                        role=sql.Identifier(role),
                    )
                )
            for table in NEVER_REMOVED:
                self._revoke(cursor, "DELETE, TRUNCATE", table, role)
            self._limit_entries(cursor, role)
            if settings.SEAL_ROLE not in ("", role):
                self._grant_sealing(cursor, names, role)
            if maintenance := str(settings.MAINTENANCE_ROLE):
                self._grant_maintenance(cursor, maintenance, role)

    def _limit_entries(self, cursor: Any, role: str) -> None:
        for table in ("audit_entry", "audit_entryrow"):
            cursor.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass"
                " AND attnum > 0 AND NOT attisdropped AND attname <> ALL(%s)",
                [table, list(FILLED_IN)],
            )
            columns = sql.SQL(", ").join(sql.Identifier(name) for (name,) in cursor.fetchall())
            self._revoke(cursor, "INSERT", table, role)
            grant = sql.SQL("GRANT INSERT ({columns}) ON {table} TO {role}")
            names = {"table": sql.Identifier(table), "role": sql.Identifier(role)}
            cursor.execute(grant.format(columns=columns, **names))

    def _grant_sealing(self, cursor: Any, names: dict[str, sql.Identifier], role: str) -> None:
        for table in SEALED:
            self._revoke(cursor, "INSERT", table, role)
        sealed = sql.SQL(", ").join(map(sql.Identifier, SEALED))
        seal = sql.Identifier(settings.SEAL_ROLE)
        self._demand(cursor, settings.SEAL_ROLE, "seal the record")
        cursor.execute(sql.SQL(SEAL_GRANTS).format(**names, seal=seal, sealed=sealed))

    def _demand(self, cursor: Any, name: str, purpose: str) -> None:
        cursor.execute("SELECT true FROM pg_roles WHERE rolname = %s", [name])
        if not cursor.fetchone():
            raise CommandError(
                f"There is no database role {name}, which is to {purpose}: "
                f"CREATE ROLE {name} LOGIN PASSWORD '…' (docs/en/guides/install.md)."
            )

    def _grant_maintenance(self, cursor: Any, maintenance: str, role: str) -> None:
        self._demand(cursor, maintenance, "remove what is past its time")
        names = {"role": sql.Identifier(maintenance), "app": sql.Identifier(role)}
        cursor.execute(sql.SQL(MAINTENANCE_GRANTS).format(**names))
        self._limit_entries(cursor, maintenance)
        for table in OF_MAINTENANCE:
            self._revoke(cursor, "DELETE, TRUNCATE", table, role)

    def _warn_of_temporary_tables(self, cursor: Any, role: str) -> None:
        cursor.execute("SELECT has_database_privilege(%s, current_database(), 'TEMPORARY')", [role])
        if cursor.fetchone()[0]:
            self.stdout.write(
                f"{role} may still make temporary tables: this role does not own the database. "
                "Let its owner REVOKE TEMPORARY ON DATABASE … FROM PUBLIC."
            )

    def _revoke(self, cursor: Any, rights: str, table: str, role: str) -> None:
        cursor.execute(
            sql.SQL("REVOKE {rights} ON {table} FROM {role}").format(
                rights=sql.SQL(rights), table=sql.Identifier(table), role=sql.Identifier(role)
            )
        )

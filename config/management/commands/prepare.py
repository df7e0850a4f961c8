"""Makes a database ready for this release: `up` and the compose file run it before the rest."""

import json
import sys
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError, connections
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from accounts.models import AgentToken
from audit import erasure_ledger
from audit.demo import MARK, is_begun, is_demo
from audit.signing import adopt_old_key, note_secret
from config.fingerprint import schema_fingerprint
from config.first_run import first_run
from config.joined_migrations import first_missing
from config.older_database import find_refusal
from config.secret_check import check_secret
from config.session_check import check_primary, check_session
from notifications import push_keys

TOO_OLD = (
    "This database was last used by a release from before the migrations were joined, and one that "
    "lacks some of them ({}). Start the last release that has them once, then this one: see "
    "“Upgrading” in docs/en/guides/upgrade.md."
)


class Command(BaseCommand):
    help = "Migrate, grant, and on a new database make the first administrator; prints JSON."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--examples", action="store_true", help="register the example servers")
        parser.add_argument(
            "--demo",
            action="store_true",
            help="mark a new database as a demo's, for good; refuses one that has begun",
        )
        parser.add_argument(
            "--only-migrate", action="store_true", help="make nobody and nothing, print nothing"
        )

        parser.add_argument(
            "--restored",
            action="store_true",
            help="the database is an older one, which is declared next: do not compare it",
        )

    def handle(
        self, *, examples: bool, demo: bool, only_migrate: bool, restored: bool, **options: Any
    ) -> None:
        # What these say goes to the error output: ours is read by a program.
        wrong = check_session(settings.DATABASE_URL, settings.DATABASE_DIRECT_URL) or check_primary(
            settings.DATABASE_DIRECT_URL
        )
        if wrong := wrong or self._wrong_secret(before_rotation=only_migrate):
            raise CommandError(wrong)
        # One of an earlier release cannot be read yet.
        with suppress(ProgrammingError):
            if not restored and is_begun():
                self._require_present()
        if lacking := first_missing(MigrationRecorder(connections["owner"]).applied_migrations()):
            raise CommandError(TOO_OLD.format(lacking))
        if demo:
            mark_as_demo()
        call_command("migrate", database="owner", interactive=False, verbosity=0)
        call_command("grant_app_role", stdout=sys.stderr)
        call_command("ensure_roles", stdout=sys.stderr)
        with connections["owner"].cursor() as cursor:
            cursor.execute("SELECT core_make_months()")
        adopt_old_key()
        note_secret()
        push_keys.ensure()
        if not restored:
            self._require_present()
            erasure_ledger.keep_up()
        if only_migrate:
            return
        shown = {} if AgentToken.objects.exists() else first_run(examples=examples)
        self._note_fingerprint()
        self.stdout.write(json.dumps(shown))

    def _wrong_secret(self, *, before_rotation: bool) -> str:
        """`before_rotation` takes a restored database that an old secret sealed."""
        url, old = settings.DATABASE_OWNER_URL, settings.OLD_SECRET_KEYS
        if before_rotation and any(not check_secret(url, secret) for secret in old):
            return ""
        return check_secret(url, settings.SECRET_KEY, old)

    def _require_present(self) -> None:
        if refusal := find_refusal():
            raise CommandError(refusal)

    def _note_fingerprint(self) -> None:
        # Last, and in the database itself: whoever finds it need not do any of this.
        note = sql.SQL("COMMENT ON TABLE django_migrations IS {}")
        with connections["owner"].cursor() as cursor:
            cursor.execute(note.format(sql.Literal(schema_fingerprint())))


def mark_as_demo() -> None:
    """Raises CommandError where a real record has begun: it never becomes a demo's."""
    if is_begun():
        if not is_demo():
            raise CommandError(
                "This database holds a real record, which does not become a demo. "
                "Start the demo on another data directory (--data)."
            )
    else:
        with connections["owner"].cursor() as cursor:
            cursor.execute(MARK)

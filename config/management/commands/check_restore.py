"""`manage.py check_restore`: the newest backup is restored aside, verified, and removed again."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.services import record
from config import archive, host, restore_check
from config.embedded.service import CannotStart
from config.restore_check import CannotRestore


class Command(BaseCommand):
    help = "Restore a backup into a scratch directory, verify the record there, and remove it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "path", type=Path, nargs="?", help="a backup, or a folder of them (<data>/backups)"
        )
        parser.add_argument(
            "--scratch", type=Path, help="where there is room for it (the system's folder)"
        )
        host.add_data_argument(parser)

    def handle(self, *, path: Path | None, scratch: Path | None, **options: Any) -> None:
        path = path.resolve() if path else None
        host.enter(options["data"].resolve())
        chosen = path or settings.DATA_DIR / "backups"
        try:
            chosen = restore_check.newest_in(chosen) if chosen.is_dir() else chosen
            done = restore_check.check(chosen, scratch=scratch)
        except (CannotRestore, CannotStart, archive.BadBackup, OSError) as error:
            host.record_failure("backup.check_failed", str(error), path=str(chosen))
            raise CommandError(str(error)) from error
        record("backup.checked", actor=host.actor(), **done.facts())
        self.stdout.write(
            f"{chosen}: restored and verified, {done.entries} sealed entries of {done.taken_at}.\n"
            f"{done.backup_bytes:,} bytes, {done.database_bytes:,} as a database. Read in "
            f"{done.read_s} s, restored in {done.restore_s} s, verified in {done.verify_s} s."
        )

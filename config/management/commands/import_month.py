"""`manage.py import_month FILE`: calls of an archived month are back in the database."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from approvals import payload_erasure
from approvals.retention.erasing import begin_again
from audit import erasure_ledger
from audit.erasure_ledger import LedgerUnusable
from calls import month_archive
from calls.month_archive import CannotArchive, Month
from config import host
from core.english import gettext as _

ERASED_AGAIN = _("Erased before the import, and erased again.")


class Command(BaseCommand):
    help = "Put an archived month's calls back into the database, after verifying the file."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--check", action="store_true", help="only verify the file")
        host.add_data_argument(parser)

    def handle(self, *, file: Path, check: bool, **options: Any) -> None:
        file = file.resolve()
        host.enter(options["data"].resolve())
        try:
            facts = month_archive.check(file)
            if check:
                self.stdout.write(f"{file}: {facts['calls']} calls of {facts['month']}, verified.")
                return
            month = Month.parse(facts["month"])
            with transaction.atomic():
                count = month_archive.put_back(month, file, by=host.actor())
                erased = self._erase_again()
                begin_again(month.first)
        except (CannotArchive, LedgerUnusable) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{count} calls of {facts['month']} are back.")
        if erased:
            self.stdout.write(f"{erased} payloads that had been erased were erased again.")

    def _erase_again(self) -> int:
        """Repeats erasures from after the archive was written; returns their number."""
        if not erasure_ledger.location().exists():
            return 0
        listed = erasure_ledger.read(erasure_ledger.location())
        return payload_erasure.erase_again(listed, by=host.actor(), reason=ERASED_AGAIN)

"""`manage.py import_month FILE`: calls of an archived month are back in the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from approvals import payload_erasure
from approvals.retention.erasing import begin_again
from audit import erasure_ledger
from audit.erasure_ledger import LedgerUnusable
from calls import month_archive
from calls.month_archive import CannotArchive, Month
from config import host
from core import object_store
from core.english import gettext as _
from core.object_store import StoredFile, StoreFailed

ERASED_AGAIN = _("Erased before the import, and erased again.")


class Command(BaseCommand):
    help = "Put an archived month's calls back into the database, after verifying the file."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="a path, or s3://BUCKET/PATH")
        parser.add_argument("--check", action="store_true", help="only verify the file")
        host.add_data_argument(parser)

    def handle(self, *, file: str, check: bool, **options: Any) -> None:
        place = file if object_store.is_place(file) else str(Path(file).resolve())
        host.enter(options["data"].resolve())
        try:
            with _at_hand(place) as path:
                facts = month_archive.check(path)
                if check:
                    said = f"{place}: {facts['calls']} calls of {facts['month']}, verified."
                    self.stdout.write(said)
                else:
                    self._put_back(Month.parse(facts["month"]), path)
        except (CannotArchive, LedgerUnusable, StoreFailed) as error:
            raise CommandError(str(error)) from error

    def _put_back(self, month: Month, path: Path) -> None:
        with transaction.atomic():
            count = month_archive.put_back(month, path, by=host.actor())
            erased = self._erase_again()
            begin_again(month.first)
        self.stdout.write(f"{count} calls of {month.name} are back.")
        if erased:
            self.stdout.write(f"{erased} payloads that had been erased were erased again.")

    def _erase_again(self) -> int:
        """Repeats erasures from after the archive was written; returns their number."""
        if not erasure_ledger.location().exists():
            return 0
        listed = erasure_ledger.read(erasure_ledger.location())
        return payload_erasure.erase_again(listed, by=host.actor(), reason=ERASED_AGAIN)


@contextmanager
def _at_hand(place: str) -> Iterator[Path]:
    """The file itself, or a copy of what a store has, for as long as it is read."""
    if not object_store.is_place(place):
        yield Path(place)
        return
    stored = StoredFile.parse(place)
    with NamedTemporaryFile(dir=settings.DATA_DIR) as copy:
        object_store.get(stored, copy)
        copy.flush()
        yield Path(copy.name)

"""`manage.py archive_month YYYY-MM`: calls of a month as a file, which may take their place."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from calls import month_archive
from calls.month_archive import CannotArchive, Month
from config import host
from core import object_store
from core.object_store import StoredFile, StoreFailed


class Command(BaseCommand):
    help = "Write a past month's calls with their proofs to a file, verify it, and remove them."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("month", help="YYYY-MM, in UTC")
        parser.add_argument(
            "--to",
            default="",
            help="the folder of archives (<data>/archive), or s3://BUCKET/PATH",
        )
        parser.add_argument(
            "--remove", action="store_true", help="remove the calls from the database afterwards"
        )
        host.add_data_argument(parser)

    def handle(self, *, month: str, to: str, remove: bool, **options: Any) -> None:
        host.enter(options["data"].resolve())
        try:
            chosen = Month.parse(month)
            if object_store.is_place(to):
                facts = self._store(chosen, StoredFile.parse(to).below(_name(chosen)))
            else:
                folder = Path(to) if to else settings.DATA_DIR / "archive"
                facts = self._write(chosen, _private(folder) / _name(chosen))
            if remove:
                month_archive.remove(chosen, facts, by=host.actor())
                self.stdout.write(f"The calls of {month} were removed from the database.")
        except FileExistsError as error:
            raise CommandError(f"{error} is there already.") from None
        except (CannotArchive, StoreFailed, OSError) as error:
            raise CommandError(str(error)) from error

    def _store(self, month: Month, place: StoredFile) -> dict[str, Any]:
        """Verified here, and compared with what the store has afterwards."""
        if object_store.exists(place):
            raise FileExistsError(str(place))
        with TemporaryDirectory(dir=_private(settings.DATA_DIR / "archive")) as folder:
            path = Path(folder) / _name(month)
            facts = month_archive.write(month, path)
            object_store.put(path, place)
        self._tell(str(place), facts)
        return facts

    def _write(self, month: Month, path: Path) -> dict[str, Any]:
        facts = month_archive.write(month, path)
        self._tell(str(path), facts)
        return facts

    def _tell(self, place: str, facts: Mapping[str, Any]) -> None:
        self.stdout.write(
            f"{place}: {facts['calls']} calls and {facts['to'] - facts['from']} entries, "
            f"verified. SHA-256 {facts['sha256']}."
        )


def _name(month: Month) -> str:
    return f"countersign-{month.name}.jsonl.zst"


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder

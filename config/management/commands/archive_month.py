"""`manage.py archive_month YYYY-MM`: calls of a month as a file, which may take their place."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from calls import month_archive
from calls.month_archive import CannotArchive, Month
from config import host


class Command(BaseCommand):
    help = "Write a past month's calls with their proofs to a file, verify it, and remove them."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("month", help="YYYY-MM, in UTC")
        parser.add_argument("--to", type=Path, help="the folder of archives (<data>/archive)")
        parser.add_argument(
            "--remove", action="store_true", help="remove the calls from the database afterwards"
        )
        host.add_data_argument(parser)

    def handle(self, *, month: str, to: Path | None, remove: bool, **options: Any) -> None:
        host.enter(options["data"].resolve())
        folder = to or settings.DATA_DIR / "archive"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"countersign-{month}.jsonl.zst"
        try:
            chosen = Month.parse(month)
            facts = month_archive.write(chosen, path)
            self.stdout.write(
                f"{path}: {facts['calls']} calls and {facts['to'] - facts['from']} entries, "
                f"verified. SHA-256 {facts['sha256']}."
            )
            if remove:
                month_archive.remove(chosen, facts, by=host.actor())
                self.stdout.write(f"The calls of {month} were removed from the database.")
        except FileExistsError:
            raise CommandError(f"{path} is there already.") from None
        except (CannotArchive, OSError) as error:
            raise CommandError(str(error)) from error

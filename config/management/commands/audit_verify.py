import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.record_checks import unrecorded
from audit.live import NotSigned, check_live, first_new_id
from audit.structure import unsealed
from audit.verify import notes
from calls import record_checks as call_checks
from config import host
from core import guards, months


class Command(BaseCommand):
    help = "Check every entry in the database against what was signed, and against anchors."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--anchor", type=Path, action="append", help="a file of checkpoints kept elsewhere"
        )
        parser.add_argument(
            "--since",
            type=int,
            default=0,
            metavar="SIZE",
            help="trust the checkpoint of so many entries, and go on from there",
        )

    def handle(self, *, anchor: list[Path] | None, since: int, **options: Any) -> None:
        kept = Path(settings.ANCHOR_FILE)
        files = anchor or ([kept] if kept.exists() else [])
        anchors = [note for file in files for note in notes(file.read_text())]
        try:
            found = check_live(anchors, since=since)
        except NotSigned as error:
            raise CommandError(str(error)) from error
        # What stands beside the record, and has to be in it.
        oldest = first_new_id(since)
        found.wrong += [*unrecorded(), *call_checks.unrecorded(oldest), *guards.differing()]
        found.wrong += months.unguarded()
        found.notes += months.overdue()
        for sentence in found.notes:
            self.stdout.write(sentence)
        for sentence in found.wrong:
            self.stderr.write(sentence)
        if found.wrong:
            # What is wrong may also keep the entry from being written.
            wrong = found.wrong
            host.record_failure("audit.verification_failed", wrong[0], findings=len(wrong))
            sys.exit(1)
        for sentence in found.restored:
            self.stderr.write(sentence)
        self.stdout.write(
            f"{found.entries} entries hold, by {found.checkpoints} checkpoints and "
            f"{found.anchors} anchors; {unsealed(oldest)} are not sealed yet."
        )
        # As verify.py: what is there holds, and a restore, which it declares, dropped some.
        if found.restored:
            sys.exit(3)

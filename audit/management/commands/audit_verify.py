import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from audit.live import check_live, unsealed
from audit.verify import notes


class Command(BaseCommand):
    help = "Check every entry in the database against what was signed, and against anchors."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--anchor", type=Path, action="append", help="a file of checkpoints kept elsewhere"
        )

    def handle(self, *, anchor: list[Path] | None, **options: Any) -> None:
        kept = Path(settings.ANCHOR_FILE)
        files = anchor or ([kept] if kept.exists() else [])
        found = check_live([note for file in files for note in notes(file.read_text())])
        for sentence in found.wrong:
            self.stderr.write(sentence)
        if found.wrong:
            sys.exit(1)
        self.stdout.write(
            f"{found.entries} entries hold, by {found.checkpoints} checkpoints and "
            f"{found.anchors} anchors; {unsealed()} are not sealed yet."
        )

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.exporting import rest_of_record, whole_record
from audit.resuming import cut_to_whole_lines


class Command(BaseCommand):
    help = "Write the whole sealed record as JSONL, for verify.py (audit/verify.py, one file)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path)
        parser.add_argument(
            "--resume",
            action="store_true",
            help="go on with a file that was not written to its end",
        )

    def handle(self, *, file: Path | None, resume: bool, **options: Any) -> None:
        if file is None:
            if resume:
                raise CommandError("--resume needs a file.")
            _write(whole_record(), sys.stdout.buffer)
        elif resume and file.exists():
            with file.open("r+b") as opened:
                known = cut_to_whole_lines(opened)
                _write(rest_of_record(*known) if known else whole_record(), opened)
        else:
            with file.open("wb") as opened:
                _write(whole_record(), opened)


def _write(lines: Iterable[str], file: BinaryIO) -> None:
    for line in lines:
        file.write(line.encode())
    file.flush()

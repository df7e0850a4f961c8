import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from audit.exporting import whole_record


class Command(BaseCommand):
    help = "Write the whole sealed record as JSONL, for verify.py (audit/verify.py, one file)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=argparse.FileType("w"), default=sys.stdout)

    def handle(self, *, file: Any, **options: Any) -> None:
        for line in whole_record():
            file.write(line)
        file.flush()

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.demo import filling
from config.demo.month import DAYS


class Command(BaseCommand):
    help = "Fill a demo's database with 30 invented days; `up --demo` runs it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=DAYS, help="days of calls (%(default)s)")

    def handle(self, *, days: int, **options: Any) -> None:
        try:
            count = filling.fill(days)
        except filling.NotFilled as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{count} calls of the demo are there.")

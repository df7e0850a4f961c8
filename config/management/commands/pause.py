"""`manage.py pause`: from now on no call is sent, until `manage.py resume`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from calls import pauses
from config import host


class Command(BaseCommand):
    help = "Send nothing until `resume`: new calls are refused, waiting ones wait."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--reason", default="maintenance", help="agents and people read it")
        host.add_data_argument(parser)

    def handle(self, **options: Any) -> None:
        host.enter(options["data"].resolve())
        begun = pauses.begin(options["reason"], by=host.actor())
        self.stdout.write("Paused." if begun else "It was paused already.")

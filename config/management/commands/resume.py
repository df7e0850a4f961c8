"""`manage.py resume`: ends what `manage.py pause` or `up --paused` began."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from calls import pauses
from config import host


class Command(BaseCommand):
    help = "End a pause: calls are taken and sent again."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        host.add_data_argument(parser)

    def handle(self, **options: Any) -> None:
        host.enter(options["data"].resolve())
        if why := pauses.why_undeclared():
            raise CommandError(why)
        ended = pauses.end(by=host.actor())
        self.stdout.write("Calls are sent again." if ended else "Nothing was paused.")

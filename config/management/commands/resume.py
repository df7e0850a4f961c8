"""`manage.py resume`: ends what `manage.py pause` or `up --paused` began."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError
from psycopg.errors import InsufficientPrivilege

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
        try:
            ended = pauses.end(by=host.actor())
        except ProgrammingError as error:
            if not isinstance(error.__cause__, InsufficientPrivilege):
                raise
            raise CommandError(
                "Only the database's owner ends a pause: give its URL as DATABASE_OWNER_URL. In "
                "containers: docker compose run --rm migrate python manage.py resume"
            ) from error
        self.stdout.write("Calls are sent again." if ended else "Nothing was paused.")

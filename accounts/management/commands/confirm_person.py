from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import services
from accounts.management.people import find_person
from core.errors import CountersignError


class Command(BaseCommand):
    help = "Say that an invited account is held by another person than whoever invited it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("person", help="a user name")

    def handle(self, *, person: str, **options: Any) -> None:
        known = find_person(person)
        try:
            services.confirm_at_host(known)
        except CountersignError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Confirmed: {person}.")

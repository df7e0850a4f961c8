from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts import second_factor
from accounts.management.people import find_person


class Command(BaseCommand):
    help = "Remove the passkeys and the code app of a person who lost them; the record says so."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("person", help="a user name")

    def handle(self, *, person: str, **options: Any) -> None:
        known = find_person(person)
        self.stdout.write(f"Removed of {person}: {second_factor.reset_at_host(known)}.")

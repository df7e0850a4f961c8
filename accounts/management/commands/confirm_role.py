from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import role_changes
from core.errors import CountersignError


class Command(BaseCommand):
    help = "Give a role that an administrator asked for, where no second one can confirm it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("person", help="a user name")
        parser.add_argument("role", help="as it was asked for: Approver or Administrator")

    def handle(self, *, person: str, role: str, **options: Any) -> None:
        asked = (one for one in role_changes.requested() if one.person.username == person)
        change = next((one for one in asked if one.role == role), None)
        if change is None:
            raise CommandError(f"Nobody asked that {person} become {role}.")
        try:
            role_changes.confirm(change, by=None)
        except CountersignError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{person} is {role} now.")

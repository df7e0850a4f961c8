from getpass import getpass
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import services
from accounts.management.people import find_person
from accounts.models import User


class Command(BaseCommand):
    help = "Set a person's password; the record says so, and cards do if the person decides."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("person", help="a user name")

    def handle(self, *, person: str, **options: Any) -> None:
        known = find_person(person)
        services.set_password_at_host(known, _ask(known))
        self.stdout.write(f"The password of {person} is set.")


def _ask(person: User) -> str:
    password = getpass("Password: ")
    if password != getpass("Password (again): "):
        raise CommandError("The two differ: nothing is changed.")
    try:
        validate_password(password, person)
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    return password

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import services
from accounts.models import User


class Command(BaseCommand):
    help = "Print an address that signs a person in once, within 24 hours."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "person", nargs="?", help="a user name; the first administrator if none"
        )

    def handle(self, *, person: str | None, **options: Any) -> None:
        self.stdout.write(services.sign_in_link(self._person(person)))

    def _person(self, username: str | None) -> User:
        if username is None:
            return services.first_administrator()
        known = User.objects.filter(username=username, is_active=True).first()
        if known is None:
            raise CommandError(f"There is no active person “{username}”.")
        return known

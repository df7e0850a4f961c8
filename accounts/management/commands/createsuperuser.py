from typing import Any

from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Refused: roles say what people may do, and nobody stands above them."

    def handle(self, **options: Any) -> None:
        raise CommandError(
            "There are no superusers: people are invited in the console, and the first one signs "
            "in by `manage.py sign_in_link`."
        )

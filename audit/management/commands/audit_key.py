from typing import Any

from django.core.management.base import BaseCommand

from audit.signing import keys


class Command(BaseCommand):
    help = "Print the keys that signed checkpoints: give them to whoever is to check the record."
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        for key in keys():
            self.stdout.write(str(key))
